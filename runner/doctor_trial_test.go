package runner

import (
	"testing"

	"carma/containers"
	"carma/runner/label"
)

// TestTrialsSwept: the sweep keeps the container of a trial that is in progress, and removes
// one that a killed daemon left, even if it runs.
func TestTrialsSwept(t *testing.T) {
	g := newRig(t)
	g.script("torch", untilStopped)
	make := func(name string) {
		t.Helper()
		id, err := g.engine.Create(g.ctx(), containers.Spec{Name: name, Image: "torch", Labels: map[string]string{
			label.Instance: g.instance, label.Task: "0", label.Attempt: "1", label.Nonce: "",
		}})
		if err == nil {
			err = g.engine.Start(g.ctx(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		t.Helper()
		list, err := g.engine.List(g.ctx(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	name, over := g.trials.Name("doctor")
	make(name)
	g.reconciler.Sweep(g.ctx(), nil, 1, containerUse{g.Runner})
	if left() != 1 {
		t.Error("a trial lost its container")
	}
	over()
	g.reconciler.Sweep(g.ctx(), nil, 1, containerUse{g.Runner})
	if left() != 0 {
		t.Error("a trial's container stays")
	}
	make(name)
	g.restart()
	g.eventually("it is removed", func() bool { return left() == 0 })
}
