package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
)

// TestCallsHaveLimits checks that every call of an engine that hangs returns, with the error
// for an engine that does not answer. A wait continues, and returns the exit when the engine
// works again.
func TestCallsHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := containerstest.NewFake()
		defer f.Shutdown()
		f.AddImage("i", containerstest.Image{Run: untilKilled})
		d, ctx := Bounded{f}, t.Context()
		id, err := d.Create(ctx, containers.Spec{Name: "job", Image: "i"})
		if err == nil {
			err = d.Start(ctx, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() { _, err := d.Wait(ctx, id); waited <- err }()
		synctest.Wait()
		f.Freeze()
		for what, call := range map[string]func() error{
			"image":    func() error { _, err := d.Image(ctx, "i"); return err },
			"pull":     func() error { return d.Pull(ctx, "i", containers.Credential{}) },
			"create":   func() error { _, err := d.Create(ctx, containers.Spec{Name: "other", Image: "i"}); return err },
			"start":    func() error { return d.Start(ctx, id) },
			"signal":   func() error { return d.Signal(ctx, id) },
			"kill":     func() error { return d.Kill(ctx, id) },
			"remove":   func() error { return d.Remove(ctx, id) },
			"list":     func() error { _, err := d.List(ctx, nil); return err },
			"attached": func() error { _, err := d.Attached(ctx, id); return err },
		} {
			if err := call(); !errors.Is(err, containers.ErrUnavailable) || strings.Contains(err.Error(), "context") {
				t.Errorf("%s: %v, want ErrUnavailable", what, err)
			}
		}
		time.Sleep(10 * waitRound)
		select {
		case err := <-waited:
			t.Fatalf("wait came back: %v", err)
		default:
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := d.Kill(gone, id); !errors.Is(err, context.Canceled) || errors.Is(err, containers.ErrUnavailable) {
			t.Errorf("a call that was given up: %v", err)
		}
		f.Thaw()
		if err := d.Kill(ctx, id); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("wait: %v", err)
		}
	})
}

// untilKilled runs until the container is stopped or killed.
func untilKilled(ctx context.Context, _ *containerstest.Process) int {
	<-ctx.Done()
	return 143
}
