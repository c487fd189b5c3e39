package suite

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/tasks"
	"carma/runner/api"
)

func psCommand(a *cli.App) *cobra.Command {
	var s named
	cmd := &cobra.Command{
		Use:   "ps [flags] [FILE | -p NAME]",
		Short: "List the tasks of a suite",
		Long: `List the tasks of a suite's latest run, also finished ones, and before them its
helpers: MEM and CPUS are what each may use, and in a table of 100 columns or more,
or a pipe, MEM-BOOKED and CPUS-BOOKED what is booked of the machine for it.`,
		Args: namedSuite(false),

		ValidArgsFunction: completeFile,
	}
	s.flags(cmd.Flags(), "f")
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := contentOf(a, cmd, &s, args, false)
		if err != nil {
			return err
		}
		if *asJSON && c.helpers == nil {
			return a.JSON(c.tasks)
		}
		if *asJSON {
			return a.JSON(struct {
				Tasks []api.Task `json:"tasks"`
				*api.SuiteState
			}{c.tasks, c.helpers})
		}
		info, err := c.client.Info(cmd.Context())
		if err != nil {
			return err
		}
		if c.helpers != nil {
			if err := a.Print(helperTable(c.helpers, time.Now(), cli.WidthOf(a.Out))); err != nil {
				return err
			}
			if c.helpers.Phase != "ready" {
				a.Say("suite %s is %s%s", c.group, c.helpers.Phase, cli.Printable(because(c.helpers.Reason)))
			}
			if len(c.tasks) == 0 {
				return nil
			}
		}
		return a.Print(tasks.Table(c.tasks, info.Now, cli.WidthOf(a.Out)))
	}
	return cmd
}

// content is the part of a suite that a command line names.
type content struct {
	client  *api.Client
	group   string
	tasks   []api.Task
	helpers *api.SuiteState // or nil if no helpers are up
}

// contentOf finds the tasks and helpers of the suite that a command line selects. With
// more, the arguments after it are services.
func contentOf(a *cli.App, cmd *cobra.Command, s *named, args []string, more bool) (*content, error) {
	name, services, err := group(a, s, args, more)
	if err != nil {
		return nil, err
	}
	c := &content{group: name}
	if c.client, err = a.Client(cmd); err != nil {
		return nil, err
	}
	state, err := c.client.Suite(cmd.Context(), name)
	if s.ended && notFound(err) {
		state, err = c.client.EndedSuite(cmd.Context(), name)
	}
	if err == nil {
		c.helpers = &state
		chosen := len(services) > 0
		if state.Helpers, services = some(&state, services); len(services) == 0 && chosen {
			return c, nil // only helpers are named
		}
	} else if !notFound(err) {
		return nil, err
	}
	c.tasks, err = members(cmd.Context(), c.client, name, services)
	if c.helpers != nil && notFound(err) && len(services) == 0 {
		return c, nil
	}
	return c, noSuite(err, name)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// noSuite explains an unknown group.
func noSuite(err error, group string) error {
	if notFound(err) {
		return cli.Usagef("carma suite up starts it", "no run of suite %s", group)
	}
	return err
}

func waitCommand(a *cli.App) *cobra.Command {
	var s named
	var r endReport
	cmd := &cobra.Command{
		Use:   "wait [flags] [FILE | -p NAME] [SERVICE...]",
		Short: "Wait until a suite's tasks have finished",
		Long: `Wait until the tasks of a suite, or of some of its services, have finished, and
print a table of the results. Exits with 0 if all succeeded, else with 1.`,
		Args: namedSuite(true),

		ValidArgsFunction: completeFile,
	}
	s.flags(cmd.Flags(), "f")
	cmd.Flags().BoolVar(&r.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&r.junit, "junit", "", "write the result to a `file` as JUnit XML")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := contentOf(a, cmd, &s, args, true)
		if err != nil {
			return err
		}
		if len(c.tasks) == 0 {
			return cli.Usagef("carma suite down ends it", "suite %s has no task to wait for, only helpers", c.group)
		}
		if err := untilAllFinished(cmd.Context(), a, c.client, c.tasks); err != nil {
			return err
		}
		return ended(cmd.Context(), a, c.client, &r, c.group, c.tasks)
	}
	return cmd
}

// untilAllFinished waits for tasks, and updates them.
func untilAllFinished(ctx context.Context, a *cli.App, client *api.Client, tasks []api.Task) error {
	for i := range tasks {
		if tasks[i].Finished() {
			continue
		}
		var err error
		if tasks[i], err = attach.UntilFinished(ctx, a, client, strconv.FormatInt(tasks[i].ID, 10)); err != nil {
			return err
		}
	}
	return nil
}
