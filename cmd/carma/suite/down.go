package suite

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/runner/api"
)

func downCommand(a *cli.App) *cobra.Command {
	var s named
	var request api.StopRequest
	cmd := &cobra.Command{
		Use:   "down [flags] [FILE | -p NAME]",
		Short: "Stop a suite's tasks and helpers",
		Long: `Stop the tasks of a suite that have not ended, and its helpers, and print their
names; none of the tasks starts meanwhile. If there is nothing to stop, that is
success. The output of the tasks stays until carma rm, volumes until -v.`,
		Args: namedSuite(false),

		ValidArgsFunction: completeFile,
	}
	s.flags(cmd.Flags(), "f")
	var volumes bool
	cmd.Flags().BoolVarP(&volumes, "volumes", "v", false, "remove its volumes too, with all that is in them")
	cli.DurationFlag(cmd.Flags(), &request.Grace, "timeout", "time between stop signal and kill")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		group, _, err := group(a, &s, args, false)
		if err != nil {
			return err
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		request.Reason = "stopped with carma suite down"
		return down(cmd.Context(), a, client, group, request, volumes)
	}
	return cmd
}

// down stops the tasks of a suite, then removes its helpers.
func down(ctx context.Context, a *cli.App, client *api.Client, group string, request api.StopRequest, volumes bool) error {
	stopped, err := client.StopGroup(ctx, group, request)
	if err != nil && !notFound(err) {
		return err
	}
	for _, id := range stopped.Tasks {
		task, err := attach.UntilFinished(ctx, a, client, strconv.FormatInt(id, 10))
		if err != nil {
			return err
		}
		a.Println(task.Name)
	}
	removed, err := client.DropSuite(ctx, group, volumes, request.Grace)
	if err != nil && !notFound(err) {
		return err
	}
	for _, name := range removed.Helpers {
		a.Println(name)
	}
	for _, name := range removed.Volumes {
		a.Say("removed the volume %s", name)
	}
	if len(stopped.Tasks)+len(removed.Helpers)+len(removed.Networks)+len(removed.Volumes) == 0 {
		a.Say("nothing of suite %s is left to stop", group)
	}
	return nil
}
