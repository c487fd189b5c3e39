package attach

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// TestObey checks that Ctrl-C stops the task, that a second Ctrl-C detaches after the stop was
// accepted, and that Ctrl-\ detaches without a stop.
func TestObey(t *testing.T) {
	for name, c := range map[string]struct {
		signals  []os.Signal
		stopping bool
		code     int
	}{
		"Ctrl-C twice":       {[]os.Signal{os.Interrupt, os.Interrupt}, true, cli.ExitDetached},
		"SIGTERM twice":      {[]os.Signal{syscall.SIGTERM, syscall.SIGTERM}, true, 143},
		"Ctrl-\\":            {[]os.Signal{syscall.SIGQUIT}, false, 0},
		"Ctrl-C and Ctrl-\\": {[]os.Signal{os.Interrupt, syscall.SIGQUIT}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			signals := make(chan os.Signal, 2)
			for _, s := range c.signals {
				signals <- s
			}
			var out, errs bytes.Buffer
			a := &One{Task: 3, Console: cli.New(strings.NewReader(""), &out, &errs, "test").Console(), Signals: signals}
			ctx, cancel := context.WithCancelCause(t.Context())
			asked, taken := make(chan struct{}, 2), make(chan struct{})
			a.obey(ctx, cancel, "task 3", func(context.Context, api.StopRequest) error {
				asked <- struct{}{}
				close(taken)
				return nil
			})
			var detached *detachedError
			if !errors.As(context.Cause(ctx), &detached) || detached.stopping != c.stopping {
				t.Fatalf("left by %v", context.Cause(ctx))
			}
			code := 0
			if err := a.Finish(nil, detached); err != nil {
				code = int(err.(cli.CodeError))
			}
			if code != c.code || strings.Contains(errs.String(), "is being stopped") != c.stopping {
				t.Errorf("exit code %d: %s", code, errs.String())
			}
			if c.signals[0] == syscall.SIGQUIT && len(asked) > 0 {
				t.Error("it was stopped")
			}
			if len(c.signals) == 2 && c.signals[1] != syscall.SIGQUIT {
				select {
				case <-taken:
				default:
					t.Error("it left before the stop was taken")
				}
			}
		})
	}
}

func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		task api.Task
		want string
	}{
		{api.Task{Phase: "estimating"}, "estimating its memory"},
		{api.Task{Phase: "held", Waits: "it waits for task 17 to succeed"}, "held: it waits for task 17 to succeed"},
		{api.Task{Phase: "queued", Position: 2, Waits: "GPU 0 is full"}, "queued, 2nd; waits because: GPU 0 is full"},
		{api.Task{Phase: "recovering", Position: 1}, "recovering, 1st"},
		{api.Task{Phase: "launching", Attempts: []api.Attempt{{GPUs: []api.GPURef{{Index: 1}, {Index: 3}}}}}, "starting on GPUs 1,3"},
		{api.Task{Phase: "running"}, ""}, {api.Task{Phase: "failed"}, ""},
	} {
		if got := progress(&tt.task); got != tt.want {
			t.Errorf("%s: %q", tt.task.Phase, got)
		}
	}
}
