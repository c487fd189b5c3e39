package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/mapper/model"
	"carma/runner/api"
)

// Events returns the command carma events.
func Events(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "events [flags]",
		GroupID: cli.GroupTasks,
		Short:   "Print what happens to tasks, as it happens, a line each",
		Long: `Print what happens to tasks from now on, a line for each change of a phase and
each new attempt, until Ctrl-C: time, event, number, name, user, and what there is
to know about it. The events are the phases: estimating, queued, held, launching,
running, recovering, suspending, suspended, resuming, stopping, succeeded,
failed, cancelled. Others are idle, busy, and device: its GPUs can no longer be
opened in the container, or can again.

With --json each line is an object with time, event, before, task, name, user,
group, attempt, gpus, exit_code and reason. After a restart of the daemon the
stream goes on; tasks that have ended meanwhile are told of then. A phase that is
over within milliseconds may be left out.`,
		Example: `  carma events --mine
  carma events --json --filter status=finished | while read -r line; do ...; done`,
		Args: cli.NoArgs,

		ValidArgsFunction: cli.NoCompletion,
	}
	var s pick.Selector
	s.Flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, an object per line")
	count := 0
	cli.CountFlagP(cmd.Flags(), &count, 1, "count", "n", "end after so many events (default: never)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		e := &teller{a: a, client: client, asJSON: *asJSON, chosen: &s, left: count, known: map[int64]state{}, patience: cli.BeginPatience(a.Say)}
		signals, release := cli.StopSignals()
		defer release()
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		go func() {
			select {
			case <-signals:
				cancel()
			case <-ctx.Done():
			}
		}()
		if err := e.run(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
	return cmd
}

// event is a change of a task.
type event struct {
	Time     time.Time    `json:"time"`
	Event    string       `json:"event"`
	Before   string       `json:"before,omitempty"` // the previous phase, or empty for a new task
	Task     int64        `json:"task"`
	Name     string       `json:"name"`
	User     string       `json:"user"`
	Group    string       `json:"group,omitempty"`
	Attempt  int          `json:"attempt,omitempty"`
	GPUs     []api.GPURef `json:"gpus,omitempty"`
	ExitCode *int         `json:"exit_code,omitempty"`
	Reason   string       `json:"reason,omitempty"`
}

// state is the last reported state of a task.
type state struct {
	phase   string
	attempt int
	idle    bool
	devices string // reason why it cannot open its GPUs
}

// teller prints the events of the selected tasks.
type teller struct {
	a        *cli.App
	client   *api.Client
	asJSON   bool
	left     int // number of events before the end, or 0 for no end
	chosen   *pick.Selector
	known    map[int64]state // unfinished tasks; for look-up, and after a restart
	patience *cli.Patience
}

// run follows the daemon, across its restarts, until ctx ends or enough events are
// printed (io.EOF).
func (e *teller) run(ctx context.Context) error {
	for first := true; ; first = false {
		err := e.catchUp(ctx, first)
		if err == nil {
			e.patience.Answered()
			err = e.client.WatchAll(ctx, e.tell)
			e.patience = cli.NewPatience(e.a.Say)
		}
		if err == nil {
			err = &api.NoDaemonError{Socket: e.client.Socket()} // the daemon ended the stream because it stops
		}
		if errors.Is(err, io.EOF) {
			return err
		}
		if err := e.patience.Retry(ctx, err); err != nil {
			return err
		}
	}
}

// catchUp reads the present phases, and reports the changes since the stream broke.
func (e *teller) catchUp(ctx context.Context, first bool) error {
	list, err := e.client.Tasks(ctx, api.ListOptions{})
	if err != nil {
		return err
	}
	open := map[int64]bool{}
	for i := len(list) - 1; i >= 0; i-- {
		open[list[i].ID] = true
		if first {
			e.known[list[i].ID] = stateOf(&list[i])
		} else if err := e.tell(list[i]); err != nil {
			return err
		}
	}
	for id := range e.known {
		if open[id] {
			continue
		}
		t, err := e.client.Task(ctx, strconv.FormatInt(id, 10))
		if err == nil {
			err = e.tell(t)
		}
		if err != nil && cli.Away(err) {
			return err
		}
		delete(e.known, id) // removed, or already reported
	}
	return nil
}

func stateOf(t *api.Task) state {
	s := state{phase: t.Phase, idle: t.Idle != nil}
	if last := cli.LastAttempt(t); last != nil {
		s.attempt, s.devices = last.N, last.Devices
	}
	return s
}

// tell prints a task's change, if it is of interest.
func (e *teller) tell(t api.Task) error {
	before, known := e.known[t.ID]
	now := stateOf(&t)
	if known && before == now || !known && t.Finished() && t.Ended.IsZero() {
		return nil
	}
	if e.known[t.ID] = now; t.Finished() {
		delete(e.known, t.ID)
	}
	if !e.chosen.Fits(&t) {
		return nil
	}
	ev := event{Time: changed(&t), Event: t.Phase, Before: before.phase, Task: t.ID, Name: t.Name, User: t.User, Group: t.Group, Attempt: now.attempt, ExitCode: t.ExitCode, Reason: t.Reason}
	switch {
	case now.idle && !before.idle:
		ev.Event, ev.Time, ev.Reason = "idle", time.Now(), cli.IdleText(t.Idle)
	case !now.idle && before.idle && now.phase == before.phase:
		ev.Event, ev.Time = "busy", time.Now()
	case now.devices != before.devices && now.phase == before.phase && now.attempt == before.attempt:
		ev.Event, ev.Time, ev.Reason = "device", time.Now(), cmp.Or(now.devices, "its GPUs can be opened in the container again")
	}
	if t.Suspension != nil && ev.Reason == "" {
		ev.Reason = Hint(&t)
	}
	if last := cli.LastAttempt(&t); last != nil && (cli.Placed(&t) || t.Finished()) {
		ev.GPUs = last.GPUs
	}
	return e.print(&ev, &t)
}

// print prints an event. It returns io.EOF with the last requested event.
func (e *teller) print(ev *event, t *api.Task) error {
	if e.asJSON {
		if err := json.NewEncoder(e.a.Out).Encode(ev); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(e.a.Out, "%s  %-10s  %d  %s  %s%s\n", ev.Time.Local().Format("2006-01-02 15:04:05"), ev.Event, t.ID, cli.Printable(t.Name), t.User, about(t)); err != nil {
		return err
	}
	if e.left--; e.left == 0 {
		return io.EOF
	}
	return nil
}

// about returns additional facts of an event, after two spaces.
func about(t *api.Task) string {
	text := Hint(t)
	if last := cli.LastAttempt(t); cli.Placed(t) && last != nil && t.Phase != string(model.Suspending) {
		if text = cli.Beside(last.GPUs); last.Devices != "" {
			text = last.Devices
		}
	}
	if text == "" {
		return ""
	}
	return "  " + cli.Printable(text)
}

// changed returns the time at which a task entered its phase, as far as known.
func changed(t *api.Task) time.Time {
	last := cli.LastAttempt(t)
	switch {
	case t.Finished() && !t.Ended.IsZero():
		return t.Ended
	case last == nil:
		return t.Submitted
	case t.Phase == string(model.Suspended) && t.Suspension != nil:
		return t.Suspension.Since
	case t.Suspension != nil, cli.Placed(t) && last.Suspended > 0: // just now
		return time.Now()
	case t.Phase == "running" && !last.Started.IsZero():
		return last.Started
	case !last.Ended.IsZero():
		return last.Ended
	}
	return last.Launched
}
