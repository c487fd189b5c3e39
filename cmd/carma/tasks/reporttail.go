package tasks

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/containers"
	"carma/containers/endtext"
	"carma/runner/api"
)

// ReportTail returns the command carma report-tail.
func ReportTail(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "report-tail TASK",
		GroupID: cli.GroupTasks,
		Short:   "Print the anonymised end of a failed task's output as a sample",
		Long: `Print the end of a task's output with the facts that carma judged it by, in the
form of carma's samples. Paths, names, addresses and other words that could tell
who ran it are replaced. Read it before you pass it on: carma cannot know every
name. Write into its first line which class was right, and add it to
containers/testdata/tails or to a report about a wrong outcome.`,
		Args: oneTask,

		ValidArgsFunction: pick.Complete(true),
	}
	attempt := 0
	cli.CountFlag(cmd.Flags(), &attempt, 1, "attempt", "this attempt instead of the last")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ref, err := pick.Ref(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		task, err := client.Task(cmd.Context(), ref)
		if err != nil {
			return err
		}
		at, err := endedAttempt(&task, attempt)
		if err != nil {
			return err
		}
		names := []string{task.User, task.Name, task.Group}
		fmt.Fprintln(a.Out, sampleHead(at))
		_, err = client.Logs(cmd.Context(), ref, api.LogOptions{Attempt: at.N, Tail: containers.TailLines}, func(l api.LogLine) error {
			if l.Stream == "carma" {
				return nil
			}
			_, err := fmt.Fprintln(a.Out, cli.Printable(endtext.Anonymise(l.Line, names...)))
			return err
		})
		return err
	}
	return cmd
}

// endedAttempt returns the ended attempt number n, or the last one if n is 0.
func endedAttempt(t *api.Task, n int) (*api.Attempt, error) {
	for i := len(t.Attempts) - 1; i >= 0; i-- {
		at := &t.Attempts[i]
		if at.Outcome != "" && (n == 0 || at.N == n) {
			return at, nil
		}
	}
	if n > 0 {
		return nil, cli.Usagef(fmt.Sprintf("carma why %d lists its attempts", t.ID), "task %d has no attempt %d that has ended", t.ID, n)
	}
	return nil, cli.Usagef("wait for its end, or stop it", "task %d has no attempt that has ended", t.ID)
}

// sampleHead returns the first line of a sample.
func sampleHead(at *api.Attempt) string {
	head := fmt.Sprintf("# code=%d class=%s source=report", at.ExitCode, at.Outcome)
	var facts []string
	for _, w := range at.Witnesses {
		switch {
		case w.Source == string(containers.SourceOutput) && w.Rule != "" && !strings.Contains(head, " rule="):
			head += " rule=" + w.Rule
		case w.Source == string(containers.SourceKernel):
			facts = append(facts, "oom-killed")
		case w.Source == string(containers.SourceMemory) && w.Says == "not-gpu-oom":
			facts = append(facts, "untouched")
		case w.Source == string(containers.SourceMemory) && w.Says == string(containers.ClassGPUOOM):
			facts = append(facts, "card-full")
		}
	}
	if len(facts) > 0 {
		head += " facts=" + strings.Join(facts, ",")
	}
	return head
}
