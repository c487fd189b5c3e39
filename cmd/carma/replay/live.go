package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/configs/traces"
	"carma/estimator/booking"
	"carma/mapper/model"
	"carma/mapper/sim"
	"carma/runner/api"
)

// liveReplay submits a trace to the daemon, across restarts of the daemon. Every task has
// a predetermined name. So after a submission without an answer, the replay can check
// whether the task was accepted.
type liveReplay struct {
	client   *api.Client
	console  *cli.Console
	patience *cli.Patience

	trace                 traces.Trace
	image, policy, prefix string
	id                    string    // id of this run, in a label of the tasks
	speed                 float64   // 0 for the daemon's own
	start                 time.Time // the daemon's time at the start of the trace
	synced                time.Time // the last request for the daemon's time
	now                   time.Time // the answer to it
	submitted             int
}

// beat is the time between two requests to the daemon.
const beat = 500 * time.Millisecond

func (r *liveReplay) run(ctx context.Context) (replayed, error) {
	info, err := r.client.Info(ctx)
	if err != nil {
		return replayed{}, err
	}
	if r.policy != "" && info.Policy != r.policy {
		return replayed{}, cli.Usagef("start it with: carma daemon --policy "+r.policy, "the daemon's policy is %s, not %s", info.Policy, r.policy)
	}
	if r.speed == 0 {
		r.speed = info.Speed
	}
	if r.speed != info.Speed {
		if !info.Simulated {
			return replayed{}, cli.Usagef("leave --speed out", "the daemon's GPUs are real, their time cannot run faster")
		}
		defer r.restore(ctx, info.Speed)
	}
	if err := r.sync(ctx); err != nil {
		return replayed{}, err
	}
	r.start = r.now
	for n := range r.trace.Tasks {
		if err := r.until(ctx, r.start.Add(r.trace.Tasks[n].At)); err != nil {
			return replayed{}, err
		}
		if err := r.submit(ctx, n); err != nil {
			return replayed{}, err
		}
		r.submitted++
	}
	list, err := r.wait(ctx)
	r.console.Status("")
	if err != nil {
		return replayed{}, err
	}
	records := make([]sim.Record, len(list))
	for i := range list {
		records[i] = recordOf(&list[i])
	}
	return replayed{
		Trace: r.trace.Name, Run: r.id, Image: r.image, Policy: info.Policy, Source: info.Source,
		Speed: r.speed, tasks: list, summary: sim.Summarize(records),
	}, nil
}

// sync requests the daemon's time, and sets its speed if that differs: at the beginning,
// and after a restart.
func (r *liveReplay) sync(ctx context.Context) error {
	return r.patience.Do(ctx, func() error {
		info, err := r.client.Info(ctx)
		if err == nil && info.Speed != r.speed {
			info, err = r.client.SetSpeed(ctx, r.speed)
		}
		if err == nil {
			r.now, r.synced = info.Now, time.Now()
		}
		return err
	})
}

// restore resets the daemon's speed.
func (r *liveReplay) restore(ctx context.Context, speed float64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := r.client.SetSpeed(ctx, speed); err != nil {
		r.console.Say("the daemon's speed stays %g: %s", r.speed, cli.Describe(err))
	}
}

// until waits until an instant in the daemon's time.
func (r *liveReplay) until(ctx context.Context, due time.Time) error {
	for {
		now := r.now.Add(time.Duration(float64(time.Since(r.synced)) * r.speed))
		left := time.Duration(float64(due.Sub(now)) / r.speed)
		if left <= 0 {
			return ctx.Err()
		}
		if err := sleep(ctx, min(left, beat)); err != nil {
			return err
		}
		if time.Since(r.synced) < beat {
			continue
		}
		if err := r.sync(ctx); err != nil {
			return err
		}
		if r.console.Live {
			list, err := r.list(ctx)
			if err != nil {
				return err
			}
			r.show(list)
		}
	}
}

// submit submits the n-th task, once.
func (r *liveReplay) submit(ctx context.Context, n int) error {
	request := r.request(n)
	for {
		_, err := r.client.Submit(ctx, request)
		if !cli.Away(err) {
			if err == nil {
				r.patience.Answered()
			}
			return err
		}
		if err := r.patience.Retry(ctx, err); err != nil {
			return err
		}
		list, err := r.list(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(t api.Task) bool { return t.Name == request.Name }) {
			return nil // it was accepted before the answer was lost
		}
	}
}

func (r *liveReplay) request(n int) api.Submit {
	t := r.trace.Tasks[n]
	s := api.Submit{
		Image: r.image, Command: []string{t.Workload}, Name: r.prefix + "-" + strconv.Itoa(n+1),
		GPUs: t.GPUs, Mem: int64(t.Mem), EstModel: booking.InCampaign(t.Workload, r.trace.Campaign), Priority: cmp.Or(t.Priority, model.Normal.String()),
		Labels: map[string]string{"replay": r.id, "trace": containerName(r.trace.Name), "workload": t.Workload},
	}
	if r.trace.Campaign != "" {
		s.Command = append(s.Command, "--campaign", r.trace.Campaign)
	}
	return s
}

// list returns this run's tasks, in the order of the trace.
func (r *liveReplay) list(ctx context.Context) (list []api.Task, err error) {
	err = r.patience.Do(ctx, func() error {
		list, err = r.client.Tasks(ctx, api.ListOptions{All: true, Label: "replay=" + r.id, Limit: len(r.trace.Tasks) + 1})
		return err
	})
	slices.SortFunc(list, func(a, b api.Task) int { return int(a.ID - b.ID) })
	return list, err
}

// wait returns all tasks when they have finished.
func (r *liveReplay) wait(ctx context.Context) ([]api.Task, error) {
	for {
		list, err := r.list(ctx)
		if err != nil {
			return nil, err
		}
		if len(list) != len(r.trace.Tasks) {
			return nil, fmt.Errorf("the daemon knows %d of the %d tasks that were submitted", len(list), len(r.trace.Tasks))
		}
		if !slices.ContainsFunc(list, func(t api.Task) bool { return !t.Finished() }) {
			return list, nil
		}
		r.show(list)
		if err := sleep(ctx, beat); err != nil {
			return nil, err
		}
		if err := r.sync(ctx); err != nil { // a new daemon may have its own speed
			return nil, err
		}
	}
}

// stopAll stops all submitted tasks that have not finished.
func (r *liveReplay) stopAll(ctx context.Context) {
	list, err := r.list(ctx)
	if err != nil {
		r.console.Say("its tasks cannot be stopped: %s", cli.Describe(err))
		return
	}
	for _, t := range list {
		if t.Finished() {
			continue
		}
		if _, err := r.client.Stop(ctx, strconv.FormatInt(t.ID, 10), api.StopRequest{Reason: "replay interrupted"}); err != nil && ctx.Err() == nil {
			r.console.Say("task %d cannot be stopped: %s", t.ID, cli.Describe(err))
		}
	}
}

// show updates the progress line.
func (r *liveReplay) show(list []api.Task) {
	var waiting, running, done int
	for i := range list {
		switch t := &list[i]; {
		case t.Finished():
			done++
		case cli.Placed(t) && t.Phase != string(model.Launching):
			running++
		default:
			waiting++
		}
	}
	total := len(r.trace.Tasks)
	r.console.Status(fmt.Sprintf("%s %d/%d submitted, %d waiting, %d running, %d done at %s",
		bar(done, total, 20), r.submitted, total, waiting, running, done, cli.Age(r.now.Sub(r.start))))
}

// bar returns a progress bar like [#####...............].
func bar(done, total, width int) string {
	full := width * done / max(1, total)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
