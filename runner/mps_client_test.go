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
