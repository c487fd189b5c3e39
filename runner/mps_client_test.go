package runner

import (
	"context"
	"slices"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
)

// TestStrangeClient: a task that was started as a client of MPS is on the GPU, and the
// driver does not list it as one. The mapper treats the GPU as time-sliced until it is
// listed.
func TestStrangeClient(t *testing.T) {
	long(t)
	g := newRig(t, auto(t), byMemory)
	g.script("train", untilStopped)
	show := func(told, client bool) {
		g.cards.set(gpu.Sample{UUID: "GPU-a", Used: units.GiB, ClientsTold: told, Processes: []gpu.Process{
			{PID: 51, Task: 1, Attempt: 1, Used: units.GiB, Client: client}, {PID: 7, Used: units.MiB, Client: true}}})
	}
	show(true, true)
	ref := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(ref)
	if got := g.told(); got != model.SharingUsers {
		t.Fatalf("as a client: told %q", got)
	}
	show(true, false)
	g.eventually("the mapper knows", func() bool { return g.told() == model.SharingTurns })
	show(true, true)
	g.eventually("it is a client again", func() bool { return g.told() == model.SharingUsers })
	show(true, false)
	g.eventually("the mapper knows again", func() bool { return g.told() == model.SharingTurns })
	g.stopAndCancel(ref)
	g.eventually("MPS goes on", func() bool { return g.told() == model.SharingUsers })
}

// TestFollowClient checks the conclusions from the readings of an attempt.
func TestFollowClient(t *testing.T) {
	key := gpu.AttemptKey{Task: 3, Attempt: 2}
	on := func(p ...gpu.Process) gpu.Sample { return gpu.Sample{UUID: "GPU-a", ClientsTold: true, Processes: p} }
	own := gpu.Process{PID: 9, Task: 3, Attempt: 2}
	asClient := own
	asClient.Client = true
	blind, broken := on(own), on(own)
	blind.ClientsTold, broken.Fault = false, "lost"
	for name, c := range map[string]struct {
		sample          gpu.Sample
		refused         bool
		apart, withdrew bool
	}{
		"a client":                     {on(asClient), true, false, false},
		"on the GPU, and no client":    {on(own), true, true, false},
		"the driver has no such list":  {blind, true, false, false},
		"a GPU with a fault":           {broken, true, false, false},
		"refused, and nowhere":         {on(gpu.Process{PID: 8, Task: 4, Attempt: 1, Client: true}), true, false, true},
		"nowhere yet":                  {on(), false, false, false},
		"refused, beside an unknown":   {on(gpu.Process{}), true, false, false},
		"beside a stranger, not there": {on(gpu.Process{PID: 8}), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &mpsClient{gpus: []model.GPUID{"GPU-a"}, gone: make(chan struct{})}
			if w.hears([]byte("Epoch 1 of 80")); w.refused {
				t.Fatal("refused by an ordinary line")
			}
			if c.refused {
				w.hears([]byte("UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 805: MPS client failed to connect to the MPS control daemon or the MPS server"))
			}
			for range 2 * refusedLeast {
				w.follow(key, []gpu.Sample{c.sample})
			}
			withdrew := false
			select {
			case <-w.gone:
				withdrew = true
			default:
			}
			if w.apart != c.apart || withdrew != c.withdrew {
				t.Errorf("apart %v, without its GPU %v", w.apart, withdrew)
			}
		})
	}
}

// TestTouchedBefore checks that a program that has been on its GPU may leave the GPU for some
// time, for any output.
func TestTouchedBefore(t *testing.T) {
	c := &mpsClient{gpus: []model.GPUID{"GPU-a"}, gone: make(chan struct{})}
	c.follow(gpu.AttemptKey{Task: 1, Attempt: 1}, []gpu.Sample{{UUID: "GPU-a", ClientsTold: true, Processes: []gpu.Process{{PID: 5, Task: 1, Attempt: 1, Client: true}}}})
	c.hears([]byte("CUDA error 805"))
	for range 2 * refusedLeast {
		c.follow(gpu.AttemptKey{Task: 1, Attempt: 1}, []gpu.Sample{{UUID: "GPU-a", ClientsTold: true}})
	}
	select {
	case <-c.gone:
		t.Error("it was taken to run without its GPU")
	default:
	}
}

// TestEndedClient: a late reading of an attempt that has ended is not recorded, because its GPU
// would then count as time-sliced forever.
func TestEndedClient(t *testing.T) {
	var s sharing
	key, c := gpu.AttemptKey{Task: 1, Attempt: 1}, &mpsClient{gpus: []model.GPUID{"GPU-a"}, apart: true}
	s.setClient(key, c)
	if !s.tookTurns(key, c) || len(s.apart) != 1 {
		t.Errorf("while it runs: %v", s.apart)
	}
	s.setClient(key, nil)
	s.setApart(key, nil)
	if s.tookTurns(key, c) || len(s.apart) != 0 {
		t.Errorf("after its end: %v", s.apart)
	}
}

// TestWithoutItsServer: a program that cannot reach its MPS server and continues on the
// processor is ended, and runs again without MPS.
func TestWithoutItsServer(t *testing.T) {
	long(t)
	g := newRig(t, withMPS(t), byMemory)
	pipes := make(chan string, 2)
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		pipes <- pipeOf(p)
		if pipeOf(p) == "" {
			return 0
		}
		p.Err("UserWarning: CUDA initialization: Error 805: MPS client failed to connect to the MPS control daemon or the MPS server")
		p.Out("training on cpu")
		return untilStopped(ctx, p)
	})
	task := g.finished(g.run(api.Submit{Image: "train", Mem: int64(units.GiB)}))
	if task.Phase != "succeeded" || len(task.Attempts) != 2 || task.Attempts[0].Outcome != "mps-fault" || !task.Attempts[0].Blameless ||
		task.Attempts[0].Message != "it could not reach the MPS server and went on without its GPU" {
		t.Errorf("%s: %+v", task.Phase, task.Attempts)
	}
	if got := []string{<-pipes, <-pipes}; got[0] == "" || got[1] != "" || !slices.Contains(got, "") {
		t.Errorf("pipe folders %q", got)
	}
}
