package replay

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/configs/traces"
	"carma/internal/suggest"
	"carma/mapper/policy"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// liveFlags contains the flags of a replay on the daemon, as typed.
type liveFlags struct {
	policy, image, prefix string
	speed                 float64
}

func addLiveFlags(flags *pflag.FlagSet) *liveFlags {
	f := &liveFlags{}
	flags.Float64Var(&f.speed, "speed", 0, "with --live: set a simulated server to this `speed` meanwhile (default: unchanged)")
	flags.StringVar(&f.image, "image", "carma/simtask:latest", "with --live: `image` of the tasks; it gets the workload's name as argument")
	flags.StringVar(&f.prefix, "name", "", "with --live: begin the tasks' names with this (default: the trace's name)")
	return f
}

// runLive replays one trace on the daemon and prints the results.
func runLive(a *cli.App, cmd *cobra.Command, f liveFlags, args []string, asJSON bool) error {
	switch {
	case len(args) != 1:
		return cli.Usagef("", "--live takes one trace, not %d", len(args))
	case cmd.Flags().Changed("speed") && !(f.speed > 0 && f.speed <= 100_000):
		return cli.Usagef("", "--speed: %v is not above 0 and at most 100000", f.speed)
	case f.policy != "":
		if err := suggest.OneOf(f.policy, policy.Names()); err != nil {
			return cli.Usagef("", "--policy: %v", err)
		}
	}
	trace, err := traces.Read(args[0])
	if err != nil {
		return cli.Usagef("", "%v", err)
	}
	client, err := a.Client(cmd)
	if err != nil {
		return err
	}
	r := &liveReplay{
		client: client, console: a.Console(), trace: trace, image: f.image, policy: f.policy,
		prefix: containerName(cmp.Or(f.prefix, trace.Name)), speed: f.speed, id: runID(),
	}
	r.patience = cli.NewPatience(r.console.Say)
	done, err := replayLive(cmd.Context(), a, r)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.JSON(done.json())
	} else {
		fmt.Fprint(a.Out, done.text())
	}
	if err == nil && done.summary.Failed > 0 {
		err = cli.CodeError(cli.ExitFailed)
	}
	return err
}

// replayLive runs r. The first Ctrl-C stops the submitted tasks, the second leaves them
// running.
func replayLive(ctx context.Context, a *cli.App, r *liveReplay) (replayed, error) {
	signals, release := cli.StopSignals()
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
	r.console.Echoed()
	stopped := err == nil || errors.Is(err, context.Canceled)
	if !stopped && r.submitted == 0 {
		return done, err
	}
	if !stopped {
		r.console.Say("the replay ends early; its tasks are stopped")
	} else {
		r.console.Say("stopping its tasks; press Ctrl-C again to leave them running")
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
		r.console.Say("the tasks go on: carma ps -l replay=%s", r.id)
		cancelStop()
		<-left
	}
	if stopped {
		return done, cli.CodeError(cli.ExitDetached)
	}
	return done, err
}

func runID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// containerName replaces characters that are not allowed in a task's name.
func containerName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
}
