package change

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// Drain returns the command carma drain.
func Drain(a *cli.App) *cobra.Command {
	var q api.CloseRequest
	cmd := gpus(a, &q, &cobra.Command{
		Use:   "drain [flags] GPU... | --all",
		Short: "Give GPUs no new tasks",
		Long: `Give GPUs no new tasks, until carma undrain, or as long as --for or --until say.
Their tasks go on. This outlasts restarts of the daemon. A GPU is named by its
index or UUID; several are 0,2 or 0-3. --all leaves those as they are that are
drained for longer. For admins.

With --move, their tasks move to other GPUs of the same model, one after the
other, as these have room, and go on there from where they were. A task that
cannot be suspended (docs/tasks.md) goes on where it is.`,
		Example: `  carma drain 3 --reason "fan is loud"
  carma drain 3 --move
  carma drain --all --for 2h --reason "driver update"
  carma drain 0-3 --until 22:00`,
	})
	cmd.Flags().StringVar(&q.Why, "reason", "", "reason, shown by gpus and why")
	cmd.Flags().BoolVar(&q.Move, "move", false, "move their tasks to other GPUs, without ending them")
	lasting(a, cmd, &q.For)
	return cmd
}

// Undrain returns the command carma undrain.
func Undrain(a *cli.App) *cobra.Command {
	q := api.CloseRequest{Open: true}
	return gpus(a, &q, &cobra.Command{
		Use:   "undrain GPU... | --all",
		Short: "Give drained GPUs tasks again",
		Long: `Give drained GPUs tasks again. A GPU that is out of service until it is reset, after
a fatal error, gets tasks again too: say so once it was mended. For admins.`,
	})
}

// gpus makes a command that cordons or uncordons GPUs.
func gpus(a *cli.App, q *api.CloseRequest, cmd *cobra.Command) *cobra.Command {
	cmd.GroupID = cli.GroupServer
	cmd.ValidArgsFunction = cli.NoCompletion
	cmd.Flags().BoolVar(&q.All, "all", false, "all GPUs")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case q.All && len(args) > 0:
			return cli.Usagef("give one of them", "--all and GPU %s", args[0])
		case !q.All && len(args) == 0:
			return cli.Usagef("carma gpus lists them; --all is all of them", "no GPU named")
		}
		return cli.NoEmpty(args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if q.GPUs, err = pick.GPUs(args); err != nil {
			return err
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		before, err := client.GPUs(cmd.Context())
		if err != nil {
			return err
		}
		list, err := client.CloseGPUs(cmd.Context(), *q)
		if err != nil {
			return err
		}
		if q.Open {
			sayOpen(a, q, before)
		}
		for _, g := range list {
			if g.Closed != nil {
				moves := ""
				if g.Closed.Move && len(g.Tasks) > 0 {
					moves = "; they move where that can be, as others have room"
				}
				a.Println(fmt.Sprintf("GPU %d is drained%s; tasks there: %d%s", g.Index, cli.ClosedBy(g.Closed), len(g.Tasks), moves))
			}
		}
		return nil
	}
	return cmd
}

// sayOpen lists the GPUs of an undrain that were not cordoned.
func sayOpen(a *cli.App, q *api.CloseRequest, before []api.GPU) {
	open := slices.DeleteFunc(slices.Clone(before), func(g api.GPU) bool { return g.Closed != nil || g.FaultLasts })
	if q.All && len(open) == len(before) {
		a.Say("no GPU was drained")
	}
	for _, g := range open {
		if slices.Contains(q.GPUs, g.UUID) || slices.Contains(q.GPUs, strconv.Itoa(g.Index)) {
			a.Say("GPU %d was not drained", g.Index)
		}
	}
}

// Pause returns the command carma pause.
func Pause(a *cli.App) *cobra.Command {
	var q api.CloseRequest
	cmd := launching(a, &q, &cobra.Command{
		Use:   "pause [flags]",
		Short: "Launch nothing, on any GPU",
		Long: `Launch nothing until carma unpause, or as long as --for or --until say. What runs
goes on, and what is submitted waits. This outlasts restarts of the daemon. For
admins.`,
	})
	cmd.Flags().StringVar(&q.Why, "reason", "", "reason, shown by info and why")
	lasting(a, cmd, &q.For)
	return cmd
}

// Unpause returns the command carma unpause.
func Unpause(a *cli.App) *cobra.Command {
	q := api.CloseRequest{Open: true}
	return launching(a, &q, &cobra.Command{Use: "unpause", Short: "Launch tasks again", Long: `Launch tasks again. For admins.`})
}

func launching(a *cli.App, q *api.CloseRequest, cmd *cobra.Command) *cobra.Command {
	cmd.GroupID = cli.GroupServer
	cmd.Args = cli.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		before, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		now, err := client.PauseLaunching(cmd.Context(), *q)
		switch {
		case err != nil:
			return err
		case now.Paused != nil:
			a.Println("launching is paused" + cli.ClosedBy(now.Paused) + "; what runs goes on, and carma unpause ends it")
		case before.Paused == nil:
			a.Say("launching was not paused")
		}
		return nil
	}
	return cmd
}

// lasting adds --for and --until, which limit a duration.
func lasting(a *cli.App, cmd *cobra.Command, to *time.Duration) {
	var until string
	cli.DurationFlag(cmd.Flags(), to, "for", "how long (default: until it is ended): 30m, 2h")
	cmd.Flags().StringVar(&until, "until", "", "until when, a `time`: 22:00, \"2026-01-02 08:00\"")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if until == "" {
			return run(cmd, args)
		}
		if cmd.Flags().Changed("for") {
			return cli.Usagef("give one of them", "--for and --until")
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		end, err := pick.Ahead("--until", until, info.Now)
		if err != nil {
			return err
		}
		if *to = end.Sub(info.Now); *to <= 0 {
			return cli.Usagef("write for example 22:00 or 2h", "--until: %s is over", until)
		}
		return run(cmd, args)
	}
}
