package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/configs/nearest"
	"carma/configs/traces"
	"carma/mapper"
)

// liveFlags are the flags of a replay on the daemon, as they were typed.
type liveFlags struct {
	policy, image, prefix string
	speed                 float64
}

// runLive replays one trace on the daemon and prints how it went.
func (a *app) runLive(cmd *cobra.Command, f liveFlags, args []string, asJSON bool) error {
	switch {
	case len(args) != 1:
		return usagef("", "--live takes one trace, not %d", len(args))
	case cmd.Flags().Changed("speed") && !(f.speed > 0 && f.speed <= 100_000):
		return usagef("", "--speed: %v is not above 0 and at most 100000", f.speed)
	case f.policy != "":
		if err := nearest.OneOf(f.policy, mapper.PolicyNames()); err != nil {
			return usagef("", "--policy: %v", err)
		}
	}
	trace, err := traces.Read(args[0])
	if err != nil {
		return usagef("", "%v", err)
	}
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	r := &liveReplay{
		client: client, console: a.console(), trace: trace, image: f.image, policy: f.policy,
		prefix: containerName(cmp.Or(f.prefix, trace.Name)), speed: f.speed, id: runID(),
	}
	r.patience = newPatience(r.console.say)
	done, err := a.replayLive(cmd.Context(), r)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.json(done.json())
	} else {
		fmt.Fprint(a.out, done.text())
	}
	if err == nil && done.summary.Failed > 0 {
		err = codeError(exitFailed)
	}
	return err
}

// replayLive runs r. The first Ctrl-C stops what has been submitted, the
// second leaves it.
func (a *app) replayLive(ctx context.Context, r *liveReplay) (replayed, error) {
	signals, release := stopSignals()
	defer release()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		select {
		case <-signals:
			cancel()
		case <-ended:
		}
	}()
	done, err := r.run(running)
	close(ended)
	<-interrupted
	if running.Err() == nil && err == nil {
		return done, nil
	}
	r.console.echoed()
	stopped := err == nil || errors.Is(err, context.Canceled)
	if !stopped && r.submitted == 0 {
		return done, err
	}
	if !stopped {
		r.console.say("the replay ends early; its tasks are stopped")
	} else {
		r.console.say("stopping its tasks; press Ctrl-C again to leave them running")
	}
	stopping, cancelStop := context.WithTimeout(ctx, time.Minute)
	defer cancelStop()
	left := make(chan struct{})
	go func() {
		defer close(left)
		r.stopAll(stopping)
	}()
	select {
	case <-left:
	case <-signals:
		r.console.say("the tasks go on: carma ps -l replay=%s", r.id)
		cancelStop()
		<-left
	}
	if stopped {
		return done, codeError(exitDetached)
	}
	return done, err
}

func runID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// containerName replaces what a task's name cannot hold.
func containerName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
}
