package deviceaccess

import (
	"context"
	"slices"
	"testing"
	"time"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/devices"
	"carma/runner/monitor"
)

// checker is a Checker with one answer for all containers. Their first process is 1.
type checker struct {
	state  devices.State
	checks int
}

func (c *checker) Find(names map[string]bool) map[string]int {
	found := map[string]int{}
	for name := range names {
		found[name] = 1
	}
	return found
}

func (c *checker) Rules(int, []string) string { return "rules: " + string(c.state) }

func (c *checker) Check(_ context.Context, all []devices.Container) []devices.Result {
	c.checks++
	out := make([]devices.Result, len(all))
	for i := range out {
		out[i].Nodes = []devices.Node{{Path: "/dev/nvidia0", State: c.state}}
	}
	return out
}

// TestAccessPatience checks the time at which an attempt that lost its devices is ended.
func TestAccessPatience(t *testing.T) {
	key := gpu.AttemptKey{Task: 1, Attempt: 1}
	mine := gpu.Process{PID: 7, Task: 1, Attempt: 1}
	on := func(p ...gpu.Process) []gpu.Sample { return []gpu.Sample{{UUID: "GPU-a", Processes: p}} }
	for name, c := range map[string]struct {
		state  devices.State
		before []gpu.Sample // the reading before the loss
		after  []gpu.Sample
		wait   time.Duration
		ends   bool
	}{
		"never used":                    {devices.Denied, on(), on(), 0, true},
		"the node is gone":              {devices.Gone, on(), on(), 0, true},
		"can be opened":                 {devices.Openable, on(), on(), time.Hour, false},
		"not known":                     {devices.Unknown, on(), on(), time.Hour, false},
		"in use":                        {devices.Denied, on(mine), on(mine), time.Hour, false},
		"used a moment ago":             {devices.Denied, on(mine), on(), patience - time.Second, false},
		"used long ago":                 {devices.Denied, on(mine), on(), patience, true},
		"beside another task":           {devices.Denied, on(), on(gpu.Process{PID: 8, Task: 2, Attempt: 1}), 0, true},
		"beside a process of no number": {devices.Denied, on(), on(gpu.Process{}), time.Hour, false},
		"a GPU with a fault":            {devices.Denied, on(), []gpu.Sample{{UUID: "GPU-a", Fault: "lost"}}, time.Hour, false},
		"no reading":                    {devices.Denied, on(), nil, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			d := New(&checker{state: c.state}, func(gpu.AttemptKey, Result) {})
			d.now = func() time.Time { return now }
			lost, stop := d.Add(key, []string{"GPU-a"}, Result{State: devices.Unknown}, false, "box")
			defer stop()
			d.Follow(c.before)
			d.round(t.Context())
			for range monitor.MinReadings - 1 {
				d.Follow(c.after)
			}
			if closed(lost) {
				t.Fatal("too early")
			}
			now = now.Add(c.wait)
			if d.Follow(c.after); closed(lost) != c.ends {
				t.Errorf("ended: %v", !c.ends)
			}
		})
	}
}

// TestAccessRounds: a container is checked when it is new, when its device rules have changed,
// and when another event requests a check, but at no other time.
func TestAccessRounds(t *testing.T) {
	a := &checker{state: devices.Openable}
	var told []devices.State
	d := New(a, func(_ gpu.AttemptKey, c Result) { told = append(told, c.State) })
	_, stop := d.Add(gpu.AttemptKey{Task: 1, Attempt: 1}, []string{"GPU-a"}, Result{State: devices.Unknown}, false, "box")
	step := func(what string, checks int) {
		t.Helper()
		if d.round(t.Context()); a.checks != checks {
			t.Errorf("%s: %d checks, want %d", what, a.checks, checks)
		}
	}
	step("it is new", 1)
	step("nothing", 1)
	a.state = devices.Denied
	step("its rules", 2)
	step("nothing", 2)
	d.CheckAll()
	step("asked for", 3)
	d.Follow([]gpu.Sample{{UUID: "GPU-a", Warnings: []string{"Xid 94"}}})
	step("an Xid", 4)
	a.state = devices.Unknown
	step("its rules", 5)
	if got := d.State(gpu.AttemptKey{Task: 1, Attempt: 1}); got.State != devices.Denied {
		t.Errorf("a check that failed has changed it to %+v", got)
	}
	a.state = devices.Openable
	step("its rules", 6)
	if len(told) != 2 || told[0] != devices.Denied || told[1] != devices.Openable {
		t.Errorf("told: %v", told)
	}
	stop()
	a.state = devices.Denied
	step("it has ended", 6)
	if _, stop := d.Add(gpu.AttemptKey{Task: 2, Attempt: 1}, nil, Result{State: devices.Unknown}, false, "box"); len(d.of) != 0 {
		stop()
		t.Error("a task without GPUs is checked")
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestLostGPUs: the GPUs with lost nodes of their own are named, or all if only shared nodes
// are lost.
func TestLostGPUs(t *testing.T) {
	nodes := func(id model.GPUID) []string {
		return map[model.GPUID][]string{"a": {"/dev/nvidia0"}, "b": {"/dev/nvidia1"}}[id]
	}
	all := []model.GPUID{"a", "b", "c"}
	for lost, want := range map[string][]model.GPUID{"/dev/nvidia1": {"b"}, "/dev/nvidiactl": all} {
		if got := (Result{Lost: []string{lost}}).LostGPUs(all, nodes); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", lost, got, want)
		}
	}
}
