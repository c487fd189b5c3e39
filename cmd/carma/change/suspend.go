package change

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"carma/cmd/carma/attach"
	"carma/cmd/carma/cli"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
)

// Suspend returns the command carma suspend.
func Suspend(a *cli.App) *cobra.Command {
	var note api.Note
	async := false
	cmd := each(a, &cobra.Command{
		Use:   "suspend [flags] TASK... | --mine | --group NAME",
		Short: "Take running tasks off their GPUs without ending them",
		Long: `Take running tasks off their GPUs without ending them, until carma resume. What
each has in GPU memory goes to host memory, and its threads stop. It is the same
attempt afterwards; its time limit stands still. Returns when they are off their
GPUs.

The NVIDIA driver does that, 570 or newer on x86-64, for a program on one GPU;
carma doctor says whether it works here. A task that cannot be suspended runs on,
with the reason. carma requeue --hold stops it instead: then it goes on from its
own checkpoint, if it writes one.
` + chosenByFlags + `.`,
		Example: `  carma suspend 17 --reason "room for the demo"; carma resume 17`,
	}, change{
		do: func(ctx context.Context, client *api.Client, ref string) error {
			task, err := client.Suspend(ctx, ref, note)
			if err == nil {
				a.Say("%s", cli.Printable(leaving(&task)))
			}
			return err
		},
		after: func(ctx context.Context, client *api.Client, ref string) error {
			if async {
				return nil
			}
			task, err := attach.Until(ctx, a, client, ref, func(t api.Task) bool { return t.Phase != string(model.Suspending) })
			if err == nil && task.Phase == string(model.Running) {
				err = fmt.Errorf("task %d: %s", task.ID, task.Reason)
			}
			return err
		},
	})
	cmd.Flags().BoolVar(&async, "no-wait", false, "return before they are off their GPUs")
	cmd.Flags().StringVar(&note.Why, "reason", "", "reason, shown by ps and why")
	return cmd
}

// leaving describes the result of a request to suspend a task.
func leaving(t *api.Task) string {
	s := t.Suspension
	switch {
	case s == nil && t.Reason != "":
		return fmt.Sprintf("task %d is %s: %s", t.ID, t.Phase, t.Reason)
	case s == nil:
		return fmt.Sprintf("task %d is %s", t.ID, t.Phase)
	case t.Phase == string(model.Suspending):
		return fmt.Sprintf("task %d is being suspended: %s go to host memory", t.ID, units.Bytes(s.Host))
	}
	return fmt.Sprintf("task %d is %s: %s are in host memory", t.ID, t.Phase, units.Bytes(s.Host))
}

// Resume returns the command carma resume.
func Resume(a *cli.App) *cobra.Command {
	waits := false
	cmd := each(a, &cobra.Command{
		Use:   "resume [flags] TASK... | --mine | --group NAME",
		Short: "Let suspended tasks come back to their GPUs",
		Long: `Let suspended tasks come back as soon as there is room, before tasks of their
priority that have not run: each to the GPU that it had, or to one of the same
model where the driver can move it. carma why says what one waits for.
` + chosenByFlags + `.`,
	}, change{
		oldest: true,
		do: func(ctx context.Context, client *api.Client, ref string) error {
			task, err := client.Resume(ctx, ref)
			if err == nil {
				a.Say("%s", cli.Printable(comingBack(&task)))
			}
			return err
		},
		after: func(ctx context.Context, client *api.Client, ref string) error {
			if !waits {
				return nil
			}
			_, err := attach.Until(ctx, a, client, ref, func(t api.Task) bool { return t.Suspension == nil })
			return err
		},
	})
	cmd.Flags().BoolVar(&waits, "wait", false, "return when they run again")
	return cmd
}

// comingBack returns when a suspended task resumes.
func comingBack(t *api.Task) string {
	switch s := t.Suspension; {
	case s == nil:
		return fmt.Sprintf("task %d is %s", t.ID, t.Phase)
	case t.Phase == string(model.Suspending):
		return fmt.Sprintf("task %d is still being suspended; it comes back then", t.ID)
	case t.Phase == string(model.Resuming):
		text := fmt.Sprintf("task %d comes back", t.ID)
		if at := cli.LastAttempt(t); at != nil {
			text += " " + cli.Beside(at.GPUs)
		}
		return text
	case s.HeldBy != "":
		return fmt.Sprintf("task %d comes back when it is released: %s holds it; carma release %d", t.ID, s.HeldBy, t.ID)
	}
	if t.Waits != "" {
		return fmt.Sprintf("task %d comes back when there is room: %s", t.ID, t.Waits)
	}
	return fmt.Sprintf("task %d comes back when there is room", t.ID)
}
