package suite

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/runner/api"
)

func logsCommand(a *cli.App) *cobra.Command {
	s := named{ended: true}
	var r endReport
	cmd := &cobra.Command{
		Use:   "logs [flags] [FILE | -p NAME] [SERVICE...]",
		Short: "Show the output of a suite's tasks and helpers",
		Long: `Show the output of a suite's tasks and helpers, or of some of its services, of its
latest run, also after its end. Each line begins with the name of its task or
helper.`,
		Args: namedSuite(true),

		ValidArgsFunction: completeFile,
	}
	s.flags(cmd.Flags(), "")
	r.colorFlag(cmd.Flags())
	var o api.LogOptions
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until all have finished")
	cli.CountFlagP(cmd.Flags(), &o.Tail, 1, "tail", "n", "only the last lines of each task")
	stamp := cmd.Flags().BoolP("timestamps", "t", false, "print the time before each line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		of, err := contentOf(a, cmd, &s, args, true)
		if err != nil {
			return err
		}
		console := a.Console()
		console.Stamp = *stamp
		c := &attach.Many{One: attach.One{Client: of.client, Console: console}, Group: of.group}
		var requests []api.Submit
		for i := range of.tasks {
			c.Tasks = append(c.Tasks, api.Submitted{ID: of.tasks[i].ID, Name: of.tasks[i].Name})
			requests = append(requests, of.tasks[i].Submit)
		}
		c.Paint = r.painter(console.Out, requests)
		return ofBoth(cmd.Context(), of, c, console, o)
	}
	return cmd
}

// ofBoth shows the output of tasks and helpers. With follow it ends with the tasks,
// if there are any.
func ofBoth(ctx context.Context, of *content, c *attach.Many, console *cli.Console, o api.LogOptions) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	helpers := make(chan error, 1)
	go func() {
		if of.helpers == nil {
			helpers <- nil
			return
		}
		helpers <- helperLogs(ctx, of.client, console, of.group, of.helpers.Helpers, o)
	}()
	if len(c.Tasks) == 0 {
		return <-helpers
	}
	_, err := c.Follow(ctx, o)
	if o.Follow {
		end()
	}
	return errors.Join(err, <-helpers)
}
