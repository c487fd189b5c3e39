// Package change contains the commands that change tasks, and allow or forbid launches:
// update, hold, release, suspend, resume, requeue, rerun, top, bottom, move; drain,
// undrain, pause, unpause, reserve and unreserve.
package change

import (
	"context"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// chosenByFlags is part of the help of each command whose tasks can be selected by flags.
const chosenByFlags = `--mine, --user, --group, --label and --filter choose among the unfinished tasks`

// Hold returns the command carma hold.
func Hold(a *cli.App) *cobra.Command {
	var note api.Note
	cmd := each(a, &cobra.Command{
		Use:   "hold [flags] TASK... | --mine | --group NAME",
		Short: "Keep waiting tasks from being launched until they are released",
		Long: `Keep tasks that wait from being launched until carma release. They leave the
queue, and are in nobody's way. A running task is held by carma requeue --hold.
A suspended one does not come back while it is held.
` + chosenByFlags + `.`,
	}, change{do: func(ctx context.Context, client *api.Client, ref string) error {
		_, err := client.Hold(ctx, ref, note)
		return err
	}})
	cmd.Flags().StringVar(&note.Why, "reason", "", "reason, shown by ps and why")
	return cmd
}

// Release returns the command carma release.
func Release(a *cli.App) *cobra.Command {
	return each(a, &cobra.Command{
		Use:   "release [flags] TASK... | --mine | --group NAME",
		Short: "Let held tasks go on",
		Long: `Let tasks go on that were held. Each goes back to its queue, in its place by
number, or on waiting for other tasks or its delay.
` + chosenByFlags + `.`,
	}, change{oldest: true, do: func(ctx context.Context, client *api.Client, ref string) error {
		_, err := client.Release(ctx, ref)
		return err
	}})
}

// Requeue returns the command carma requeue.
func Requeue(a *cli.App) *cobra.Command {
	var q api.RequeueRequest
	async, tries := false, map[string]int{} // only for look-up
	cmd := each(a, &cobra.Command{
		Use:   "requeue [flags] TASK... | --mine | --group NAME",
		Short: "Stop running tasks and put them back into the queue",
		Long: `Stop running tasks and put them back into the queue. Each is stopped as by carma
stop, and starts from its beginning, or from its own checkpoint. That costs none
of its attempts. One that ends well meanwhile has succeeded. Suspended tasks can
be sent back too. Returns when they have stopped.
` + chosenByFlags + `.`,
	}, change{
		do: func(ctx context.Context, client *api.Client, ref string) error {
			task, err := client.Requeue(ctx, ref, q)
			tries[ref] = len(task.Attempts)
			return err
		},
		after: func(ctx context.Context, client *api.Client, ref string) error {
			if async {
				return nil
			}
			_, err := attach.Until(ctx, a, client, ref, func(t api.Task) bool {
				return t.Phase != "stopping" && (t.Suspension == nil || !t.Suspension.Stopping) || len(t.Attempts) > tries[ref]
			})
			return err
		},
	})
	cmd.Flags().BoolVar(&async, "no-wait", false, "return before they have stopped")
	cmd.Flags().StringVar(&q.Why, "reason", "", "reason, kept with the task")
	cmd.Flags().BoolVar(&q.Hold, "hold", false, "hold them then; carma release lets them go on")
	return cmd
}

// Top returns the command carma top.
func Top(a *cli.App) *cobra.Command { return seat(a, "top", "before", false) }

// Bottom returns the command carma bottom.
func Bottom(a *cli.App) *cobra.Command { return seat(a, "bottom", "behind", true) }

func seat(a *cli.App, name, where string, last bool) *cobra.Command {
	return each(a, &cobra.Command{
		Use:   name + " [flags] TASK... | --mine | --group NAME",
		Short: "Move waiting tasks " + where + " the others of their owner",
		Long: `Move waiting tasks ` + where + ` the other waiting tasks of their owner and
priority. Only these change their places; no other user waits longer for it.
Which task starts first also depends on what fits.
` + chosenByFlags + `,
which keep their order.`,
	}, change{oldest: last, do: func(ctx context.Context, client *api.Client, ref string) error {
		_, err := client.Move(ctx, ref, api.MoveRequest{Last: last})
		return err
	}})
}
