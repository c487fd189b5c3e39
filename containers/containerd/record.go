package containerd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	core "github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"

	"carma/containers"
)

// Labels in which the driver records its steps. A label is set before its step, and
// stays.
const (
	ownLabels = "carma.containerd/"
	// labelDir is the folder of the container's files.
	labelDir = ownLabels + "dir"
	// labelLog is the least number of output bytes to keep.
	labelLog = ownLabels + "log-bytes"
	// labelTalk is the connection of the program's input and output, see [logfile.Talk].
	labelTalk = ownLabels + "talk"
	// labelSandbox is set if the container gets no network.
	labelSandbox = ownLabels + "sandbox"
	// labelMaking is set before the container is made in the kernel. Without it no start has
	// been tried.
	labelMaking = ownLabels + "making"
	// labelStarted is the time of the start. It is set after the container is made in the
	// kernel, before its program runs. Without this label the program has not run, so it may
	// be started again. With it the program is never started a second time.
	labelStarted = ownLabels + "started"
	// labelFailed is the reason why the container cannot start.
	labelFailed = ownLabels + "failed"
	// labelExit contains the container's end as JSON, because containerd forgets it when the
	// machine restarts.
	labelExit = ownLabels + "exit"
	// labelRemoving is set while the container is being removed. List and the other methods
	// no longer find it.
	labelRemoving = ownLabels + "removing"
)

// record is the state of a container: its labels and its task. In containerd, a task is
// the process of a container, from its creation to its deletion.
type record struct {
	core.Container
	task *task.Process // nil if the container has no task
}

// look reads a container's record. Labels and task are consistent only if the caller
// holds the container's lock and no other process changes the container.
func (d *Driver) look(ctx context.Context, id string) (*record, error) {
	c, err := d.cli.ContainerService().Get(ctx, id)
	if err != nil {
		return nil, native(err)
	}
	r := &record{Container: c}
	if r.removing() {
		return nil, fmt.Errorf("container %s is being removed: %w", id, errdefs.ErrNotFound)
	}
	if r.task, err = d.task(ctx, id); err != nil {
		return nil, err
	}
	return r, nil
}

// task returns a container's task, or nil if it has none.
func (d *Driver) task(ctx context.Context, id string) (*task.Process, error) {
	res, err := d.cli.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: id})
	if err != nil {
		if err = native(err); errdefs.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	return res.Process, nil
}

func (r *record) removing() bool { return r.Labels[labelRemoving] != "" }

// started returns the time at which the program was started, or zero.
func (r *record) started() time.Time {
	at, err := time.Parse(time.RFC3339Nano, r.Labels[labelStarted])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// failure returns why the container cannot start, or nil if no reason is known.
func (r *record) failure() error {
	msg, ok := r.Labels[labelFailed]
	switch {
	case !ok:
		return nil
	case !containers.MachineFault(msg) && containers.SubmitterFault(msg):
		return fmt.Errorf("%w: %s", containers.ErrInvalid, msg)
	}
	return fmt.Errorf("%s", msg)
}

func (r *record) running() bool {
	return r.task != nil && (r.task.Status == task.Status_RUNNING || r.paused())
}

func (r *record) paused() bool {
	return r.task != nil && (r.task.Status == task.Status_PAUSED || r.task.Status == task.Status_PAUSING)
}

func (r *record) stopped() bool { return r.task != nil && r.task.Status == task.Status_STOPPED }

// lost reports whether the container was started, but containerd has no task of it.
func (r *record) lost() bool { return r.task == nil && !r.started().IsZero() }

func (r *record) state() containers.State {
	switch {
	case r.Labels[labelFailed] != "" || r.started().IsZero():
		return containers.StateCreated
	case r.Labels[labelExit] != "" || r.stopped() || r.lost():
		return containers.StateExited
	}
	return containers.StateRunning
}

// exit returns the recorded end, or false if none is recorded.
func (r *record) exit() (containers.Exit, bool) {
	if msg, ok := r.Labels[labelFailed]; ok {
		code := 126
		if notThere().MatchString(msg) {
			code = 127
		}
		return containers.Exit{Code: code, Error: msg}, true
	}
	var e containers.Exit
	if err := json.Unmarshal([]byte(r.Labels[labelExit]), &e); err != nil {
		return containers.Exit{}, false
	}
	return e, true
}

// note sets labels of a container in containerd.
func (d *Driver) note(ctx context.Context, id string, labels map[string]string) error {
	c := core.Container{ID: id, Labels: labels}
	var paths []string
	for k := range labels {
		paths = append(paths, "labels."+k)
	}
	_, err := d.cli.ContainerService().Update(ctx, c, paths...)
	return native(err)
}

// visible returns a container's labels without the driver's and containerd's own.
func visible(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, ownLabels) || k == client.StopSignalLabel })
	return out
}
