package tasks

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// Logs returns the command carma logs.
func Logs(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "logs [flags] TASK",
		GroupID: cli.GroupTasks,
		Short:   "Show a task's output",
		Long: `Show the output of all attempts of a task: its standard output on standard
output, its standard error and notices of carma on standard error. If output is
missing, a notice says how much, and why. With --json each line is an object,
and all of them go to standard output.`,
		Args: oneTask,

		ValidArgsFunction: pick.Complete(true),
	}
	var o api.LogOptions
	flags := cmd.Flags()
	flags.BoolVarP(&o.Follow, "follow", "f", false, "go on until the task has finished")
	tail := flags.StringP("tail", "n", "all", "only the last `N` lines")
	cli.CountFlag(flags, &o.Attempt, 1, "attempt", "only this attempt")
	since := flags.String("since", "", "only lines from this `time` on: 10m (ago), 09:30")
	stamp := flags.BoolP("timestamps", "t", false, "print the time before each line")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, one line of output per line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *tail != "all" {
			n, err := strconv.Atoi(*tail)
			if err != nil || n < 1 {
				return cli.Usagef("write for example --tail 100", "--tail: %q is not a number from 1 on", *tail)
			}
			o.Tail = n
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		ref, err := pick.Ref(cmd.Context(), client, args[0])
		if err != nil {
			return err
		}
		var from time.Time
		if *since != "" {
			info, err := client.Info(cmd.Context())
			if err != nil {
				return err
			}
			if from, err = pick.Moment(*since, info.Now); err != nil {
				return fmt.Errorf("--since: %w", err)
			}
		}
		console := a.Console()
		console.Stamp = *stamp
		print := console.Line
		if *asJSON {
			e := json.NewEncoder(a.Out)
			e.SetEscapeHTML(false)
			print = func(l api.LogLine) error { return e.Encode(l) }
		}
		if show := print; *since != "" {
			print = func(l api.LogLine) error {
				if l.At.Before(from) {
					return nil
				}
				return show(l)
			}
		}
		if !o.Follow {
			_, err := client.Logs(cmd.Context(), ref, o, print)
			return err
		}
		// By number, because the name may be given to another task.
		var task api.Task
		err = cli.BeginPatience(console.Say).Do(cmd.Context(), func() (err error) { task, err = client.Task(cmd.Context(), ref); return err })
		if err != nil {
			return err
		}
		f := &attach.Follower{Client: client, Task: task.ID, Options: o, Print: print, Patience: cli.NewPatience(console.Say)}
		_, err = f.Run(cmd.Context())
		return err
	}
	return cmd
}
