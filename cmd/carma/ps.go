package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carma/mapper"
	"carma/runner/api"
)

func (a *app) psCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ps [flags]",
		Short: "List tasks",
		Long: `List the unfinished tasks, newest first. GPU is where a task runs (x2: it waits
for two), MEM what it has booked or waits for on each GPU, in GiB. TIME is how
long it has waited, runs or ran.`,
		Example: `  carma ps
  carma ps -a -n 20
  carma stop $(carma ps -q -l sweep=7)`,
		Args: noArgs,
	}
	var o api.ListOptions
	flags := cmd.Flags()
	flags.BoolVarP(&o.All, "all", "a", false, "finished tasks too")
	flags.IntVarP(&o.Limit, "last", "n", 0, "only the newest `N`")
	flags.StringVar(&o.User, "user", "", "only the tasks of this `user`")
	flags.StringVar(&o.Group, "group", "", "only the tasks of this `group`")
	flags.StringVarP(&o.Label, "label", "l", "", "only tasks with this user label, `key` or key=value")
	quiet := flags.BoolP("quiet", "q", false, "only the ids")
	full := flags.Bool("no-trunc", false, "do not cut the table to the width")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Limit < 0 {
			return usagef("write for example -n 10", "-n %d is negative", o.Limit)
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		list, err := client.Tasks(cmd.Context(), o)
		if err != nil {
			return err
		}
		switch {
		case *asJSON:
			if list == nil {
				list = []api.Task{}
			}
			return a.json(list)
		case *quiet:
			for _, t := range list {
				a.println(t.ID)
			}
			return nil
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		width := widthOf(a.out)
		if *full {
			width = 0
		}
		sayOnce(list, info.Trouble)
		if err := taskTable(list, info.Now).write(a.out, width); err != nil {
			return err
		}
		for _, x := range info.Trouble {
			a.say("%s", printable(x.String()))
		}
		return nil
	}
	return cmd
}

// sayOnce leaves it to the lines below the table what all the tasks wait for.
func sayOnce(list []api.Task, trouble []api.Trouble) {
	for i := range list {
		for _, x := range trouble {
			if strings.HasPrefix(list[i].Waits, x.Text) {
				list[i].Waits = "nothing is started, see below"
			}
		}
	}
}

// taskTable shows tasks as of now, the daemon's time.
func taskTable(list []api.Task, now time.Time) *table {
	t := &table{columns: []column{
		{title: "ID", right: true}, {title: "NAME", least: 8, share: 2}, {title: "USER", least: 5, share: 1}, {title: "PHASE"},
		{title: "GPU", least: 3, share: 1}, {title: "MEM", right: true}, {title: "TIME", right: true}, {title: "WHY", least: 16, share: 3},
	}}
	for i := range list {
		task := &list[i]
		t.add(strconv.FormatInt(task.ID, 10), task.Name, task.User, task.Phase, where(task), need(task), age(timeOf(task, now)), hint(task))
	}
	return t
}

// where a task runs, or how many GPUs it waits for.
func where(t *api.Task) string {
	if last := last(t); last != nil && (placed(t) || t.Finished()) {
		return indexes(last.GPUs)
	}
	if t.GPUCount > 1 {
		return "x" + strconv.Itoa(t.GPUCount)
	}
	return "-"
}

func need(t *api.Task) string {
	switch {
	case t.Phase == string(mapper.Estimating):
		return "?"
	case t.Need == 0:
		return "whole"
	}
	return gib(t.Need)
}

// timeOf is how long a task has waited, runs or ran.
func timeOf(t *api.Task, now time.Time) time.Duration {
	switch {
	case t.Finished() && t.Started.IsZero():
		return t.Ended.Sub(t.Submitted)
	case t.Finished():
		return t.Ended.Sub(t.Started)
	case placed(t) && !t.Started.IsZero() && t.Phase != string(mapper.Launching):
		return now.Sub(t.Started)
	}
	return now.Sub(t.Submitted)
}

// hint is the one thing to know about a task.
func hint(t *api.Task) string {
	switch {
	case t.Finished():
		if t.Phase == string(mapper.Succeeded) {
			return relaunches(t)
		}
		if t.Reason != "" {
			return t.Reason
		}
		if t.ExitCode != nil {
			return fmt.Sprintf("exit code %d", *t.ExitCode)
		}
		return ""
	case placed(t):
		return relaunches(t)
	case t.Position > 0 && t.Waits != "":
		return ordinal(t.Position) + "; " + t.Waits
	case t.Position > 0:
		return ordinal(t.Position)
	}
	return t.Waits
}

// relaunches tells that a task is not in its first attempt.
func relaunches(t *api.Task) string {
	n := len(t.Attempts)
	if n < 2 {
		return ""
	}
	before := &t.Attempts[n-2]
	if before.Outcome == "stopped" && before.ReasonCode != "" {
		return fmt.Sprintf("attempt %d, after %s", t.Attempts[n-1].N, before.ReasonCode) // gpu-oom, slot-used
	}
	return fmt.Sprintf("attempt %d, after %s", t.Attempts[n-1].N, before.Outcome)
}
