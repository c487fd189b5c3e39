package tasks

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

// Why returns the command carma why.
func Why(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "why TASK",
		GroupID: cli.GroupTasks,
		Short:   "Tell why a task waits, where it runs, or how it ended",
		Long: `Tell why a task waits, where it runs, or how it ended. For a waiting task: its
place in the queue, when it is expected to start, and for each GPU the condition
that it does not meet. For a running one: its progress, its expected end, and
what its neighbours cost it. For a suspended one: who suspended it, what it has
in host memory, and what it waits for to come back.`,
		Args: oneTask,

		ValidArgsFunction: pick.Complete(false),
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ref, err := pick.Ref(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		why, err := client.Why(cmd.Context(), ref)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.JSON(why)
		}
		task, err := client.Task(cmd.Context(), ref)
		if err != nil {
			return err
		}
		fmt.Fprint(a.Out, WhyText(&why, &task))
		return nil
	}
	return cmd
}

// WhyText returns the output of carma why.
func WhyText(w *api.Why, t *api.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "task %d (%s) %s\n", t.ID, cli.Printable(t.Name), standing(w, t))
	if w.Summary != "" {
		fmt.Fprintln(&b, cli.Printable(w.Summary))
	}
	if t.Estimate.Detail != "" && !t.Submit.NoGPU && !t.Finished() && t.Phase != string(model.Estimating) {
		fmt.Fprintf(&b, "memory: %s\n", cli.Printable(t.Estimate.Detail))
	}
	b.WriteString(commandText(t.Says))
	if t.Preallocates {
		fmt.Fprintln(&b, preallocates)
	}
	if t.Idle != nil {
		fmt.Fprintf(&b, "idle: %s; carma stop %d ends it\n", cli.IdleText(t.Idle), t.ID)
	}
	for _, l := range t.Undelivered {
		fmt.Fprintf(&b, "message: %s (carma notify)\n", cli.Printable(l))
	}
	b.WriteString(startText(w))
	b.WriteString(accountText(w))
	b.WriteString(progressText(t, w.Now))
	for _, g := range w.GPUs {
		fmt.Fprintf(&b, "  GPU %-2d  %s\n", g.Index, cli.Printable(g.Text))
	}
	for _, at := range t.Attempts {
		if at.Starts > 1 {
			fmt.Fprintf(&b, "  attempts %d to %d could not be started, and count for nothing: %s\n", at.N-at.Starts+1, at.N, cli.Printable(at.Message))
			continue
		}
		fmt.Fprintf(&b, "  attempt %d %s: %s\n", at.N, share(&at), course(&at, w.Now, t.Suspension != nil && !t.Suspension.Since.IsZero()))
		b.WriteString(witnessText(&at))
	}
	return b.String()
}

// commandText describes the GPUs and checkpoints in a task's command line. The
// checkpoints determine how much of the task's work a rerun repeats.
func commandText(s *api.Says) string {
	if s == nil {
		return ""
	}
	var parts []string
	for _, p := range []struct{ what, words string }{{"takes its GPUs", s.GPUs}, {"saves checkpoints", s.Checkpoints}, {"resumes", s.Resume}} {
		if p.words != "" {
			parts = append(parts, p.what+" by "+cli.Printable(p.words))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "command line: " + strings.Join(parts, ", ") + "\n"
}

// witnessText lists the evidence for the outcome of a failed attempt, and additional
// facts.
func witnessText(at *api.Attempt) string {
	var b strings.Builder
	if at.Remark != "" {
		fmt.Fprintf(&b, "    note: %s\n", cli.Printable(at.Remark))
	}
	if at.Outcome == "ok" || at.Outcome == "stopped" {
		return b.String()
	}
	for _, w := range at.Witnesses {
		what := w.Source
		switch {
		case w.Says == "not-gpu-oom":
			what += " (against gpu-oom)"
		case w.Says != "":
			what += fmt.Sprintf(" (%s, %s)", w.Says, w.Strength)
		}
		text := w.Text
		if text == "" {
			text = "a line that only its owner may read"
		}
		if w.Rule != "" {
			text += fmt.Sprintf(" [%s]", w.Rule)
		}
		fmt.Fprintf(&b, "    %s: %s\n", what, cli.Printable(text))
	}
	return b.String()
}

// accountText describes the priority of an unfinished task and its user's resources, if
// they affect its start.
func accountText(w *api.Why) string {
	var b strings.Builder
	if w.Priority != "" && (w.Position > 0 || w.Priority != "normal") {
		fmt.Fprintf(&b, "priority: %s\n", w.Priority)
	}
	a := w.Account
	if a == nil {
		return b.String()
	}
	var quotas []string
	if a.QuotaTasks > 0 {
		quotas = append(quotas, fmt.Sprintf("%d of %d tasks", a.Tasks, a.QuotaTasks))
	}
	if a.QuotaGPUs > 0 {
		quotas = append(quotas, fmt.Sprintf("%d of %d GPUs", a.GPUs, a.QuotaGPUs))
	}
	if a.QuotaMemory > 0 {
		quotas = append(quotas, fmt.Sprintf("%s of %s", units.Bytes(a.Memory), units.Bytes(a.QuotaMemory)))
	}
	if len(quotas) > 0 {
		fmt.Fprintf(&b, "quota: %s has %s\n", cli.Printable(a.User), strings.Join(quotas, ", "))
	}
	if a.Fair {
		first := "nobody who waits goes first"
		switch {
		case a.Ahead == 1:
			first = "1 user who waits goes first"
		case a.Ahead > 1:
			first = fmt.Sprintf("%d users who wait go first", a.Ahead)
		}
		fmt.Fprintf(&b, "fair share: %s has used %.1f GPU-hours lately; %s\n", cli.Printable(a.User), a.Used/3600, first)
	}
	return b.String()
}

// preallocates is the advice for a program that allocates most of a GPU's memory at its
// start.
const preallocates = "memory: it took most of the card at its start and has not changed since, as JAX and TensorFlow do unless told otherwise; " +
	"leave XLA_PYTHON_CLIENT_PREALLOCATE and TF_FORCE_GPU_ALLOW_GROWTH to carma (memory-caps: growth), or say --exclusive"

// standing returns the state of a task as the end of a sentence.
func standing(w *api.Why, t *api.Task) string {
	switch {
	case cli.Placed(t):
		if at := cli.LastAttempt(t); at != nil {
			return fmt.Sprintf("is %s %s", t.Phase, cli.Beside(at.GPUs))
		}
		return "is " + t.Phase
	case t.Finished():
		return t.Phase
	case t.Suspension != nil && w.Position > 0:
		return fmt.Sprintf("is %s, %s of those that wait", t.Phase, cli.Ordinal(w.Position))
	case w.Position > 0 && w.Queue != "":
		return fmt.Sprintf("is %s, %s in the %s queue", t.Phase, cli.Ordinal(w.Position), w.Queue)
	}
	return "is " + t.Phase
}

// share lists an attempt's resources: its GPUs, and the memory and processors that were
// allocated to it.
func share(at *api.Attempt) string {
	parts := []string{cli.Beside(at.GPUs)}
	if g := granted(at); g != "" {
		parts = append(parts, g)
	}
	h := at.Host
	switch {
	case h.Memory > 0 && h.Limit > h.Memory:
		parts = append(parts, fmt.Sprintf("host memory %s (at most %s)", units.Bytes(h.Memory), units.Bytes(h.Limit)))
	case h.Memory > 0:
		parts = append(parts, "host memory "+units.Bytes(h.Memory).String())
	case h.Peak > 0:
		parts = append(parts, "host memory at its peak "+units.Bytes(h.Peak).String())
	}
	if h.Peak > 0 && h.Memory > 0 {
		parts = append(parts, "its peak "+units.Bytes(h.Peak).String())
	}
	if h.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("processors %g", h.CPUs))
	}
	return strings.Join(parts, ", ")
}

func granted(at *api.Attempt) string {
	if len(at.GPUs) == 0 {
		return ""
	}
	if at.Grant == 0 {
		return "whole"
	}
	if len(at.GPUs) > 1 {
		return units.Bytes(at.Grant).String() + " each"
	}
	return units.Bytes(at.Grant).String()
}

// course describes the course of an attempt. away is set if the attempt is suspended now.
func course(at *api.Attempt, now time.Time, away bool) string {
	var s string
	switch {
	case at.Outcome == "" && at.Started.IsZero():
		s = "starting"
	case at.Outcome == "" && away:
		s = "ran for " + cli.Age(now.Sub(at.Started)-at.Suspended)
	case at.Outcome == "":
		s = "running for " + cli.Age(now.Sub(at.Started)-at.Suspended)
	case at.Started.IsZero():
		s = at.Outcome
	default:
		s = fmt.Sprintf("%s after %s", at.Outcome, cli.Age(at.Ended.Sub(at.Started)-at.Suspended))
	}
	if at.Suspended > 0 {
		s += ", suspended for " + cli.Age(at.Suspended)
	}
	if at.Peak > 0 {
		s += ", peak " + units.Bytes(at.Peak).String()
	}
	if at.EnergyJ > 0 {
		s += ", " + used(at.EnergyJ)
	}
	stopped := at.Outcome == "stopped" && at.Reason != "" // the reason is more specific than the outcome
	if at.Message != "" && at.Outcome != "ok" && !stopped {
		s += " (" + cli.Printable(at.Message) + ")"
	}
	if at.Reason != "" && (stopped || at.Message == "" || !strings.Contains(at.Reason, at.Message)) {
		s += "; " + cli.Printable(at.Reason)
	}
	return s
}
