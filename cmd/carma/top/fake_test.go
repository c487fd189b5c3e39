package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// noon is the daemon's time, and the wall clock's, in the tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func gib(f float64) int64 { return int64(units.GiB.Scale(f)) }

func on(indexes ...int) (refs []api.GPURef) {
	for _, i := range indexes {
		refs = append(refs, api.GPURef{Index: i, UUID: fmt.Sprintf("GPU-%d", i)})
	}
	return refs
}

// fake is a daemon with some tasks. It records its requests.
type fake struct {
	mu    sync.Mutex
	tasks []api.Task
	gpus  []api.GPU
	info  api.Info
	log   []api.LogLine
	done  []string
	asked map[string]int // number of requests, by kind
	away  bool
	// endless means that output does not end.
	endless bool
	watch   chan api.Task
}

// lab returns a daemon with four GPUs, tasks of two users in most phases, and a name of wide
// characters.
func lab() *fake {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	f := &fake{asked: map[string]int{}, watch: make(chan api.Task)}
	f.info = api.Info{Now: noon, Speed: 1, Source: "nvml", Policy: "carma", Running: 3, Queued: 2, Suspended: 1, Held: 1}
	run := func(id int64, name, user string, mem float64, since time.Duration, gpus ...int) api.Task {
		return api.Task{
			ID: id, Name: name, User: user, UID: map[string]int{"ann": 1003, "bob": 1004, "christopher.robin": 1005}[user], Image: "train:1", Phase: "running", Priority: "normal", GPUCount: len(gpus), Need: gib(mem), Submitted: ago(since + time.Minute), Started: ago(since),
			Estimate: api.Estimate{Memory: gib(mem), Point: gib(mem * 0.9), Method: "catalogue", Detail: "resnet50 at batch size 128"},
			Attempts: []api.Attempt{{N: 1, GPUs: on(gpus...), Grant: gib(mem), Launched: ago(since), Started: ago(since), Peak: gib(mem * 0.8)}},
		}
	}
	a := run(17, "resnet-lr-0.001", "ann", 12.3, 100*time.Minute, 0)
	a.Progress = &api.Progress{Done: 1850, Total: 5000, Unit: "steps", Share: 0.37, Rate: 0.26, ETA: noon.Add(170 * time.Minute), ETABasis: "output", Slowdown: &api.Slowdown{Value: 1.32, Basis: "measured", Predicted: 1.25, Beside: []api.TaskRef{{ID: 18}}}}
	a.Attempts[0].Curve = []api.CurvePoint{{At: ago(100 * time.Minute), Used: gib(1)}, {At: ago(90 * time.Minute), Used: gib(6)}, {At: ago(40 * time.Minute), Used: gib(9.8)}}
	b := run(18, "bert-large-uncased-whole-word-masking", "christopher.robin", 25, 30*time.Second, 0, 1)
	c := run(21, "模型-训练", "bob", 38, 50*time.Hour, 2)
	c.Alone = true
	d := run(22, "paused", "bob", 8, 3*time.Hour, 3)
	d.Phase, d.Suspension = "suspended", &api.Suspension{By: "bob", Since: ago(10 * time.Minute), Host: gib(7), From: on(3)}
	f.tasks = []api.Task{
		{ID: 25, Name: "held", User: "ann", UID: 1003, Phase: "held", Priority: "normal", GPUCount: 1, Need: gib(4), Waits: "held by ann: until Monday", Submitted: ago(time.Hour)},
		{ID: 24, Name: "llama", User: "dee", UID: 1004, Phase: "queued", Priority: "high", GPUCount: 4, Position: 1, Waits: "needs 4 GPUs of its own, 1 is free", Submitted: ago(20 * time.Minute), Estimate: api.Estimate{WholeGPU: true}},
		{ID: 23, Name: "gpt2", User: "ann", UID: 1003, Phase: "queued", Priority: "normal", GPUCount: 1, Position: 2, Need: gib(31), Waits: "GPU 1 memory 25.0 of 39.5 GiB reserved, needs 31.0", Submitted: ago(10 * time.Minute)},
		d, c, b, a,
	}
	gpu := func(i int, used, foreign, smact float64, rs ...api.Resident) {
		g := api.GPU{GPURef: on(i)[0], Model: "NVIDIA A100-SXM4-40GB", Capacity: gib(40), Used: gib(used), Foreign: gib(foreign), SMACT: smact, PowerW: 300 * smact, Sharing: "mps", TemperatureC: 61, Tasks: rs}
		for _, r := range rs {
			g.Reserved += r.Grant
		}
		f.gpus = append(f.gpus, g)
	}
	gpu(0, 28, 0, 0.97, api.Resident{Task: 17, Name: a.Name, Grant: gib(12.3), Used: gib(9.8), Peak: gib(9.8)}, api.Resident{Task: 18, Name: b.Name, Grant: gib(25), Used: gib(18.2), Peak: gib(18.2)})
	gpu(1, 20.7, 2.5, 0.55, api.Resident{Task: 18, Name: b.Name, Grant: gib(25), Used: gib(18.2), Peak: gib(18.2)})
	gpu(2, 30.4, 0, 0.81, api.Resident{Task: 21, Name: c.Name, Grant: gib(38), Used: gib(30.4), Peak: gib(30.4), Alone: true})
	gpu(3, 0, 0, 0)
	f.gpus[3].Fault, f.gpus[3].Suspended = "XID 79: it has fallen off the bus", []api.Away{{Task: 22, Name: "paused", Host: gib(7)}}
	for i := range 40 {
		f.log = append(f.log, api.LogLine{Line: fmt.Sprintf("step %d loss 0.%02d \x1b[31mred\x1b[0m 100%%|\r step %d of 40", i, i, i+1), Stream: "stdout"})
	}
	return f
}

func (f *fake) note(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[what]++
	if f.away {
		return &api.NoDaemonError{Socket: "/run/carma.sock", Err: errors.New("refused")}
	}
	return nil
}

func (f *fake) Info(context.Context) (api.Info, error)  { return f.info, f.note("info") }
func (f *fake) GPUs(context.Context) ([]api.GPU, error) { return f.gpus, f.note("gpus") }

func (f *fake) Tasks(_ context.Context, o api.ListOptions) (list []api.Task, err error) {
	err = f.note("tasks " + o.Phase)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tasks {
		if !t.Finished() && (o.Phase == "" || slices.Contains(strings.Split(o.Phase, ","), t.Phase)) {
			list = append(list, t)
		}
	}
	return list, err
}

func (f *fake) Task(_ context.Context, ref string) (api.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tasks {
		if fmt.Sprint(t.ID) == ref {
			return t, nil
		}
	}
	return api.Task{}, &api.StatusError{Status: http.StatusNotFound, Detail: "there is no task " + ref}
}

func (f *fake) Why(ctx context.Context, ref string) (api.Why, error) {
	t, err := f.Task(ctx, ref)
	w := api.Why{Task: t.ID, Phase: t.Phase, Position: t.Position, Queue: "main", Summary: t.Waits, Now: noon}
	if t.Position > 0 {
		w.Start = &api.Start{Earliest: noon.Add(12 * time.Minute), Latest: noon.Add(90 * time.Minute)}
	}
	return w, errors.Join(err, f.note("why "+ref))
}

func (f *fake) Logs(ctx context.Context, ref string, o api.LogOptions, fn func(api.LogLine) error) (api.Task, error) {
	t, err := f.Task(ctx, ref)
	if t.User == "bob" {
		return t, &api.StatusError{Status: http.StatusForbidden, Detail: "task " + ref + " is bob's; its output is for its owner"}
	}
	for _, l := range f.log {
		if err := fn(l); err != nil {
			return t, err
		}
	}
	for f.endless && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		if err := fn(f.log[39]); err != nil {
			return t, err
		}
	}
	t.Phase = "succeeded"
	return t, err
}

func (f *fake) WatchAll(ctx context.Context, fn func(api.Task) error) error {
	if err := f.note("watch"); err != nil {
		return err
	}
	f.mu.Lock()
	watch := f.watch
	f.mu.Unlock()
	for {
		select {
		case t, open := <-watch:
			if !open {
				return &api.NoDaemonError{}
			}
			if err := fn(t); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// does records an action; actions on bob's tasks are refused.
func (f *fake) does(what, ref string) (api.Task, error) {
	t, err := f.Task(context.Background(), ref)
	if err == nil && t.User == "bob" {
		return t, &api.StatusError{Status: http.StatusForbidden, Detail: "task " + ref + " is bob's: you may not " + what + " it"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, what+" "+ref)
	return t, err
}

func (f *fake) Stop(_ context.Context, ref string, _ api.StopRequest) (api.Task, error) {
	return f.does("stop", ref)
}
func (f *fake) Hold(_ context.Context, ref string, _ api.Note) (api.Task, error) {
	return f.does("hold", ref)
}
func (f *fake) Release(_ context.Context, ref string) (api.Task, error) {
	return f.does("release", ref)
}
func (f *fake) Suspend(_ context.Context, ref string, _ api.Note) (api.Task, error) {
	return f.does("suspend", ref)
}
func (f *fake) Resume(_ context.Context, ref string) (api.Task, error) { return f.does("resume", ref) }
func (f *fake) Move(_ context.Context, ref string, r api.MoveRequest) (api.Task, error) {
	return f.does(map[bool]string{false: "top", true: "bottom"}[r.Last], ref)
}
