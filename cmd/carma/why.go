package main

import (
	"fmt"
	"strings"
	"time"

	"carma/mapper/units"

	"github.com/spf13/cobra"

	"carma/mapper"
	"carma/runner/api"
)

func (a *app) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why TASK",
		Short: "Tell why a task waits, where it runs, or how it ended",
		Args:  oneTask,

		ValidArgsFunction: a.completeTasks(false),
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		why, err := client.Why(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return a.json(why)
		}
		task, err := client.Task(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		fmt.Fprint(a.out, whyText(&why, &task))
		return nil
	}
	return cmd
}

func whyText(w *api.Why, t *api.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "task %d (%s) %s\n", t.ID, printable(t.Name), standing(w, t))
	if w.Summary != "" {
		fmt.Fprintln(&b, printable(w.Summary))
	}
	if t.Estimate.Detail != "" && !t.Finished() && t.Phase != string(mapper.Estimating) {
		fmt.Fprintf(&b, "memory: %s\n", printable(t.Estimate.Detail))
	}
	for _, g := range w.GPUs {
		fmt.Fprintf(&b, "  GPU %-2d  %s\n", g.Index, printable(g.Text))
	}
	for _, at := range t.Attempts {
		if at.Starts > 1 {
			fmt.Fprintf(&b, "  attempts %d to %d could not be started, and count for nothing: %s\n", at.N-at.Starts+1, at.N, printable(at.Message))
			continue
		}
		fmt.Fprintf(&b, "  attempt %d on %s, %s: %s\n", at.N, onGPUs(at.GPUs), granted(&at), course(&at, w.Now))
	}
	return b.String()
}

// standing is the state of a task as the end of a sentence.
func standing(w *api.Why, t *api.Task) string {
	switch {
	case placed(t):
		if at := last(t); at != nil {
			return fmt.Sprintf("is %s on %s", t.Phase, onGPUs(at.GPUs))
		}
		return "is " + t.Phase
	case t.Finished():
		return t.Phase
	case w.Position > 0 && w.Queue != "":
		return fmt.Sprintf("is %s, %s in the %s queue", t.Phase, ordinal(w.Position), w.Queue)
	}
	return "is " + t.Phase
}

func granted(at *api.Attempt) string {
	if at.Grant == 0 {
		return "whole"
	}
	if len(at.GPUs) > 1 {
		return units.Bytes(at.Grant).String() + " each"
	}
	return units.Bytes(at.Grant).String()
}

// course is what became of an attempt.
func course(at *api.Attempt, now time.Time) string {
	var s string
	switch {
	case at.Outcome == "" && at.Started.IsZero():
		s = "starting"
	case at.Outcome == "":
		s = "running for " + age(now.Sub(at.Started))
	case at.Started.IsZero():
		s = at.Outcome
	default:
		s = fmt.Sprintf("%s after %s", at.Outcome, age(at.Ended.Sub(at.Started)))
	}
	if at.Peak > 0 {
		s += ", peak " + units.Bytes(at.Peak).String()
	}
	stopped := at.Outcome == "stopped" && at.Reason != "" // why carma stopped it says more than that it did
	if at.Message != "" && at.Outcome != "ok" && !stopped {
		s += " (" + printable(at.Message) + ")"
	}
	if at.Reason != "" && (stopped || at.Message == "" || !strings.Contains(at.Reason, at.Message)) {
		s += "; " + printable(at.Reason)
	}
	return s
}
