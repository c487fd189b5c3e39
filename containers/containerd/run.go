package containerd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"
	"github.com/moby/sys/signal"

	"carma/containers"
	"carma/containers/containerd/logfile"
	"carma/internal/failpoint"
)

// Start runs the container unless it runs or has run.
//
// It makes the container in the kernel, with its logger, its network and a parked
// program. Then it sets labelStarted, because the program is about to run. Then the
// program runs. A start that was interrupted before this step is repeated. A start that
// was interrupted after it continues only if the program is still parked.
func (d *Driver) Start(ctx context.Context, id string) error {
	what := "start container " + id
	defer d.lock(id)()
	r, err := d.look(ctx, id)
	if err != nil {
		return d.fail(ctx, what, err)
	}
	if err := r.failure(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if r.Labels[labelExit] != "" || r.running() || r.stopped() || r.lost() {
		return nil
	}
	if err := d.run(ctx, r); err != nil {
		return d.startFailed(ctx, what, id, err)
	}
	return nil
}

func (d *Driver) run(ctx context.Context, r *record) error {
	t, err := d.made(ctx, r)
	if err != nil {
		return err
	}
	failpoint.Hit("containerd-task-made")
	if r.started().IsZero() {
		if !r.sandboxed() {
			if err := d.network.join(ctx, r.ID, t.Pid); err != nil {
				return fmt.Errorf("CNI: %w", err)
			}
		}
		if err := d.open(ctx, r, t.Pid); err != nil {
			return err
		}
		now := time.Now().UTC().Format(time.RFC3339Nano)
		if err := d.note(ctx, r.ID, map[string]string{labelStarted: now}); err != nil {
			return err
		}
	}
	failpoint.Hit("containerd-start-noted")
	_, err = d.cli.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: r.ID})
	if err = native(err); err != nil {
		// Perhaps an earlier request is still being carried out and its answer was lost.
		if t, taskErr := d.task(ctx, r.ID); taskErr == nil && t != nil && t.Status != task.Status_CREATED && t.Status != task.Status_UNKNOWN {
			return nil
		}
	}
	return err
}

// made returns the task of a container, and makes it if there is none. containerd may
// still undo a task that another daemon made, or that is half made, so made waits for
// that first.
func (d *Driver) made(ctx context.Context, r *record) (*task.Process, error) {
	_, whole := d.whole.Load(r.ID)
	earlier := r.Labels[labelMaking] != "" || r.task != nil
	if earlier && !whole && r.started().IsZero() {
		t, err := d.settle(ctx, r.ID)
		if err != nil || t != nil {
			return t, err
		}
	} else if r.task != nil {
		return r.task, nil
	}
	if err := d.newTask(ctx, r, earlier); err != nil {
		return nil, err
	}
	t, err := d.task(ctx, r.ID)
	if err == nil && t == nil {
		err = errors.New("the container is gone as soon as it was made")
	}
	return t, err
}

// newTask makes the container in the kernel. earlier is set if an attempt was made
// before.
func (d *Driver) newTask(ctx context.Context, r *record, earlier bool) error {
	c, err := d.cli.LoadContainer(ctx, r.ID)
	if err != nil {
		return err
	}
	if !earlier {
		if err := d.note(ctx, r.ID, map[string]string{labelMaking: "yes"}); err != nil {
			return err
		}
	}
	keep, _ := strconv.ParseInt(r.Labels[labelLog], 10, 64) // containers of older versions lack this label
	query := url.Values{LogCommand: {loggerArg(r.Labels[labelDir], keep, r.talk())}}
	uri := &url.URL{Scheme: "binary", Path: d.opts.Logger, RawQuery: query.Encode()}
	for begun := time.Now(); ; {
		if earlier { // its program has not run, so the log has no output from it
			if err := logfile.Clear(r.Labels[labelDir]); err != nil {
				return err
			}
		}
		_, err = c.NewTask(ctx, r.io(uri))
		if err = native(err); err == nil {
			d.whole.Store(r.ID, true)
			return nil
		}
		if !errdefs.IsAlreadyExists(err) && !halfMade(err, earlier) || time.Since(begun) > makeFor {
			return err
		}
		earlier = true
		if t, failed := d.settle(ctx, r.ID); failed != nil || t != nil {
			return failed
		}
	}
}

// makeFor is the time for which Start retries to make a container while an earlier
// request interferes. [Driver.settle] cannot see a part of containerd's two steps; it
// takes no longer than this.
const makeFor = settleFor

// startFailed records why the program will not run, and deletes the container's task. If
// containerd did not answer, it records nothing, because the start may still succeed.
func (d *Driver) startFailed(ctx context.Context, what, id string, err error) error {
	err = d.fail(ctx, what, err)
	if ctx.Err() != nil || errors.Is(err, containers.ErrUnavailable) || errors.Is(err, containers.ErrNotFound) {
		return err
	}
	msg := strings.TrimPrefix(strings.TrimPrefix(err.Error(), what+": "), containers.ErrInvalid.Error()+": ")
	if noted := d.note(ctx, id, map[string]string{labelFailed: msg}); noted != nil {
		return d.fail(ctx, what, noted)
	}
	if gone := d.endTask(ctx, id); gone != nil {
		return d.fail(ctx, what, gone)
	}
	return err
}

// Signal sends the container's stop signal.
func (d *Driver) Signal(ctx context.Context, id string) error {
	r, err := d.runs(ctx, id)
	if err == nil && r != nil {
		err = d.signal(ctx, id, "", stopSignal(r.Labels[client.StopSignalLabel]))
	}
	return d.fail(ctx, "stop container "+id, err)
}

// Kill ends the container by force. It resumes a paused container, which would not handle
// the signal otherwise.
func (d *Driver) Kill(ctx context.Context, id string) error {
	const what = "kill container "
	r, err := d.runs(ctx, id)
	if err != nil || r == nil {
		return d.fail(ctx, what+id, err)
	}
	err = d.signal(ctx, id, "", syscall.SIGKILL)
	if err == nil && r.paused() {
		_, err = d.cli.TaskService().Resume(ctx, &tasks.ResumeTaskRequest{ContainerID: id})
		if err = native(err); errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err) {
			err = nil // it has ended meanwhile
		}
	}
	return d.fail(ctx, what+id, err)
}

// runs returns the record of a running container, or nil if the container does not run or
// does not exist.
func (d *Driver) runs(ctx context.Context, id string) (*record, error) {
	r, err := d.look(ctx, id)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || !r.running() {
		return nil, err
	}
	return r, nil
}

// stopSignal parses an image's stop signal, a name or a number.
func stopSignal(s string) syscall.Signal {
	if sig, err := signal.ParseSignal(s); err == nil {
		return sig
	}
	if n, err := strconv.Atoi(s); err == nil {
		return syscall.Signal(n)
	}
	return syscall.SIGTERM
}

// signal sends a signal to a container, or to a command in it. It returns no error if the
// container or command has ended.
func (d *Driver) signal(ctx context.Context, id, exec string, sig syscall.Signal) error {
	_, err := d.cli.TaskService().Kill(ctx, &tasks.KillRequest{ContainerID: id, ExecID: exec, Signal: uint32(sig)})
	if err = native(err); err == nil || errdefs.IsNotFound(err) || errdefs.IsFailedPrecondition(err) {
		return nil
	}
	if strings.Contains(err.Error(), "process already finished") {
		return nil
	}
	return err
}

// awaitTask waits until a container's task has ended or is gone.
func (d *Driver) awaitTask(ctx context.Context, id string) error {
	_, err := d.cli.TaskService().Wait(ctx, &tasks.WaitRequest{ContainerID: id})
	if err = native(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// List returns the containers that have all the labels, by name.
func (d *Driver) List(ctx context.Context, labels map[string]string) ([]containers.Container, error) {
	const what = "list containers"
	var filter []string
	for k, v := range labels {
		filter = append(filter, fmt.Sprintf("labels.%q==%q", k, v))
	}
	slices.Sort(filter)
	var filters []string
	if len(filter) > 0 {
		filters = []string{strings.Join(filter, ",")}
	}
	found, err := d.cli.ContainerService().List(ctx, filters...)
	if err != nil {
		return nil, d.fail(ctx, what, err)
	}
	res, err := d.cli.TaskService().List(ctx, &tasks.ListTasksRequest{})
	if err != nil {
		return nil, d.fail(ctx, what, err)
	}
	byID := map[string]*task.Process{}
	for _, t := range res.Tasks {
		byID[t.ID] = t
	}
	out := make([]containers.Container, 0, len(found))
	for _, c := range found {
		r := &record{Container: c, task: byID[c.ID]}
		out = append(out, containers.Container{ID: c.ID, Name: c.ID, State: r.state(), Labels: visible(c.Labels)})
	}
	return out, nil
}
