// Package submit contains the shared parts of run and suite up: sending tasks to the
// daemon, or showing the requests instead.
package submit

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
)

// Send sends a request; Ctrl-C gives up the wait for the answer.
func Send[A any](ctx context.Context, send func(context.Context) (A, error)) (A, error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	answer, err := send(ctx)
	if errors.Is(err, context.Canceled) {
		return answer, errInterrupted
	}
	return answer, err
}

var errInterrupted = &interruptedError{}

type interruptedError struct{}

func (*interruptedError) Error() string {
	return "interrupted before the daemon answered; carma ps tells whether it has the task"
}

func (*interruptedError) Unwrap() error { return context.Canceled }
