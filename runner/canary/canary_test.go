package canary

import (
	"context"
	"errors"
	"sync"
	"testing"

	"carma/containers"
	"carma/containers/bare"
	"carma/containers/containerstest"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/label"
	"carma/runner/loop/looptest"
	"carma/runner/trial"

	"github.com/rs/zerolog"
)

// setup returns a canary on a fake engine.
func setup(t *testing.T, program string) (*Canary, *containerstest.Fake) {
	t.Helper()
	e := containerstest.NewFake()
	t.Cleanup(e.Shutdown)
	return New(Config{
		Program: program, Instance: "ab12", Driver: e, Engine: engine.New(e, zerolog.Nop()), Trials: trial.New(e, "ab12"),
		Loop: looptest.New(t).Loop, Log: zerolog.Nop(),
	}), e
}

// TestOutcomes checks that only a start failure through the engine's fault counts against the
// engine, and that no container is left.
func TestOutcomes(t *testing.T) {
	const program = "/bin/true"
	for name, c := range map[string]struct {
		program string
		change  func(*containerstest.Fake)
		want    model.CanaryOutcome
	}{
		"starts":      {program, func(*containerstest.Fake) {}, model.CanaryStarted},
		"start fails": {program, func(e *containerstest.Fake) { e.FailAll(containerstest.OpStart, errors.New("new")) }, model.CanaryFailed},
		"disk full": {program, func(e *containerstest.Fake) {
			e.FailAll(containerstest.OpImport, errors.New("no space left on device"))
		}, model.CanaryFailed},
		"image refused":   {program, func(e *containerstest.Fake) { e.FailAll(containerstest.OpImport, errors.New("plugin says no")) }, model.CanaryMissing},
		"request refused": {program, func(e *containerstest.Fake) { e.FailAll(containerstest.OpCreate, containers.ErrInvalid) }, model.CanaryMissing},
		"program fails": {program, func(e *containerstest.Fake) {
			e.AddImage(bare.CanaryImage, containerstest.Image{Run: func(context.Context, *containerstest.Process) int { return 3 }})
		}, model.CanaryMissing},
		"no program":        {"/nowhere/carma-init", func(*containerstest.Fake) {}, model.CanaryMissing},
		"no program at all": {"", func(*containerstest.Fake) {}, model.CanaryMissing},
	} {
		t.Run(name, func(t *testing.T) {
			canary, e := setup(t, c.program)
			c.change(e)
			got, fault := canary.try(t.Context())
			if got != c.want || (fault != nil) != (got == model.CanaryFailed) {
				t.Errorf("%s, %+v", got, fault)
			}
			if list, err := e.List(t.Context(), map[string]string{label.Instance: "ab12"}); err != nil || len(list) != 0 {
				t.Errorf("left over: %+v, %v", list, err)
			}
		})
	}
}

// TestNotDue checks that no canary starts unless the mapper asks for one.
func TestNotDue(t *testing.T) {
	canary, e := setup(t, "/bin/true")
	var side sync.WaitGroup
	canary.StartIfDue(t.Context(), &side)
	side.Wait()
	if canary.runs || e.Calls(containerstest.OpCreate) > 0 {
		t.Error("a canary was started")
	}
}
