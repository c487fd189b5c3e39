package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"carma/runner/api"
)

// oneSuite wants a file, or the name of a suite that comes with carma.
func oneSuite(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return usagef("write for example: "+cmd.CommandPath()+" compose.yaml", "no Compose file named")
	case len(args) > 1:
		return usagef("a suite is one file", "%d files named", len(args))
	}
	return nil
}

// namedSuite wants a file, or a name with -p; more arguments are services.
func namedSuite(more bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		named := cmd.Flags().Changed("project-name")
		switch n := len(args); {
		case named && n > 0 && !more:
			return usagef("give one of them", "-p and the file %s", args[0])
		case !named && n == 0:
			return usagef("name its file, or give its name with -p", "no suite named")
		case !named && n > 1 && !more:
			return usagef("a suite is one file", "%d files named", n)
		}
		return noEmpty(args)
	}
}

func suiteFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) suitePsCommand() *cobra.Command {
	var s suiteFlags
	cmd := &cobra.Command{
		Use:   "ps [flags] FILE | -p NAME",
		Short: "List the tasks of a suite",
		Long:  "List the tasks of a suite's latest run, finished ones too.",
		Args:  namedSuite(false),

		ValidArgsFunction: suiteFile,
	}
	s.flags(cmd.Flags())
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, tasks, _, err := a.suiteOf(cmd, &s, args)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.json(tasks)
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		return taskTable(tasks, info.Now).write(a.out, widthOf(a.out))
	}
	return cmd
}

// suiteOf finds the tasks of the suite that a command line means; services are
// the arguments behind it.
func (a *app) suiteOf(cmd *cobra.Command, s *suiteFlags, args []string) (*api.Client, []api.Task, string, error) {
	group, services, err := a.group(s, args)
	if err != nil {
		return nil, nil, "", err
	}
	client, err := a.client(cmd)
	if err != nil {
		return nil, nil, "", err
	}
	tasks, err := members(cmd.Context(), client, group, services)
	return client, tasks, group, noSuite(err, group)
}

// noSuite says what an unknown group means here.
func noSuite(err error, group string) error {
	var status *api.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return usagef("carma suite up starts it", "no run of suite %s", group)
	}
	return err
}

func (a *app) suiteLogsCommand() *cobra.Command {
	var s suiteFlags
	var r suiteReport
	cmd := &cobra.Command{
		Use:   "logs [flags] FILE [SERVICE...] | -p NAME [SERVICE...]",
		Short: "Show the output of a suite's tasks",
		Long:  "Show what the tasks of a suite, or of some of its services, have printed, each line with its task's name.",
		Args:  namedSuite(true),

		ValidArgsFunction: suiteFile,
	}
	s.flags(cmd.Flags())
	r.colorFlag(cmd.Flags())
	var o api.LogOptions
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until all have finished")
	countFlagP(cmd.Flags(), &o.Tail, 1, "tail", "n", "only the last lines of each task")
	stamp := cmd.Flags().BoolP("timestamps", "t", false, "print the time before each line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, tasks, group, err := a.suiteOf(cmd, &s, args)
		if err != nil {
			return err
		}
		console := a.console()
		console.stamp = *stamp
		c := &crowd{attached: attached{client: client, console: console}, group: group}
		var requests []api.Submit
		for i := range tasks {
			c.tasks = append(c.tasks, api.Submitted{ID: tasks[i].ID, Name: tasks[i].Name})
			requests = append(requests, tasks[i].Submit)
		}
		c.paint = r.painter(console.out, requests)
		_, err = c.follow(cmd.Context(), o)
		return err
	}
	return cmd
}

func (a *app) suiteWaitCommand() *cobra.Command {
	var s suiteFlags
	var r suiteReport
	cmd := &cobra.Command{
		Use:   "wait [flags] FILE [SERVICE...] | -p NAME [SERVICE...]",
		Short: "Wait until a suite's tasks have finished",
		Long: `Wait until the tasks of a suite, or of some of its services, have finished, and
print a table of how. Exits with 0 when all succeeded, with 1 when one did not.`,
		Args: namedSuite(true),

		ValidArgsFunction: suiteFile,
	}
	s.flags(cmd.Flags())
	cmd.Flags().BoolVar(&r.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&r.junit, "junit", "", "write the result to a `file` as JUnit XML")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, tasks, group, err := a.suiteOf(cmd, &s, args)
		if err != nil {
			return err
		}
		if err := a.untilAllFinished(cmd.Context(), client, tasks); err != nil {
			return err
		}
		return a.suiteEnded(cmd.Context(), client, &r, group, tasks)
	}
	return cmd
}

// untilAllFinished waits for tasks, which it brings up to date.
func (a *app) untilAllFinished(ctx context.Context, client *api.Client, tasks []api.Task) error {
	for i := range tasks {
		if tasks[i].Finished() {
			continue
		}
		var err error
		if tasks[i], err = a.untilFinished(ctx, client, strconv.FormatInt(tasks[i].ID, 10)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) suiteDownCommand() *cobra.Command {
	var s suiteFlags
	var request api.StopRequest
	cmd := &cobra.Command{
		Use:   "down [flags] FILE | -p NAME",
		Short: "Stop a suite's tasks",
		Long: `Stop the tasks of a suite that have not ended and print their names; none of
them starts meanwhile. If there is nothing to stop, that is success. The
output of the tasks stays until carma rm.`,
		Args: namedSuite(false),

		ValidArgsFunction: suiteFile,
	}
	s.flags(cmd.Flags())
	durationFlag(cmd.Flags(), &request.Grace, "timeout", "time between stop signal and kill")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		group, _, err := a.group(&s, args)
		if err != nil {
			return err
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		request.Reason = "stopped with carma suite down"
		stopped, err := client.StopGroup(cmd.Context(), group, request)
		var status *api.StatusError
		if errors.As(err, &status) && status.Status == http.StatusNotFound || err == nil && len(stopped.Tasks) == 0 {
			a.say("nothing of suite %s is left to stop", group)
			return nil
		}
		if err != nil {
			return err
		}
		for _, id := range stopped.Tasks {
			task, err := a.untilFinished(cmd.Context(), client, strconv.FormatInt(id, 10))
			if err != nil {
				return err
			}
			a.println(task.Name)
		}
		return nil
	}
	return cmd
}
