package tasks

import (
	"context"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// Inspect returns the command carma inspect.
func Inspect(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect TASK...",
		GroupID: cli.GroupTasks,
		Short:   "Print all there is to know about tasks, as JSON",
		Long: `Print the tasks as a JSON list: the request, the memory estimate with its
method, every attempt with its GPUs, grant, peak, energy and outcome. Memory is
in bytes, spans of time in nanoseconds, energy in joules. --format prints what
it names instead, as carma ps does.`,
		Example: `  carma inspect 17
  carma inspect -f '{{.Phase}} {{.ExitCode}}' 17`,
		Args: someTasks,

		ValidArgsFunction: pick.Complete(true),
	}
	form := cmd.Flags().StringP("format", "f", "", "print a Go `template` for each task, or columns")
	cli.JSONFlag(cmd) // the output is JSON in any case; some users expect the flag
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := chosenFormat(cmd, *form)
		if err != nil {
			return err
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		refs, err := pick.Refs(cmd.Context(), client, args, true)
		if err != nil {
			return err
		}
		found := []api.Task{}
		wrong := a.Each(cmd, refs, func(ref string) error {
			task, err := client.Task(cmd.Context(), ref)
			if err == nil {
				found = append(found, task)
			}
			return err
		})
		if f == nil {
			err = a.JSON(found)
		} else {
			err = formatted(cmd.Context(), a, client, f, found)
		}
		if err != nil {
			return err
		}
		return wrong
	}
	return cmd
}

// formatted prints tasks in the format of --format.
func formatted(ctx context.Context, a *cli.App, client *api.Client, f *format, list []api.Task) error {
	info, err := client.Info(ctx)
	if err != nil {
		return err
	}
	return f.print(a, opened(list), info.Now, cli.WidthOf(a.Out))
}
