package root

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"carma/cmd/carma/account"
	"carma/cmd/carma/agent"
	"carma/cmd/carma/attach"
	"carma/cmd/carma/change"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/daemon"
	"carma/cmd/carma/doctor"
	"carma/cmd/carma/estimate"
	"carma/cmd/carma/image"
	"carma/cmd/carma/journal"
	"carma/cmd/carma/mcp"
	"carma/cmd/carma/mps"
	"carma/cmd/carma/notify"
	"carma/cmd/carma/replay"
	"carma/cmd/carma/run"
	"carma/cmd/carma/server"
	"carma/cmd/carma/settings"
	"carma/cmd/carma/suite"
	"carma/cmd/carma/tasks"
	"carma/cmd/carma/top"
	"carma/cmd/carma/trace"
	"carma/cmd/carma/web"
)

// Execute runs one command line and returns the exit code. agentRun is as in [Main].
func Execute(a *cli.App, args []string, agentRun agent.Run) int {
	root := New(a, agentRun)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		err = helpOfNone(cmd)
	}
	return a.Report(cmd, asTyped(cmd, args, err))
}

// commands returns all commands, in the order of carma --help.
func commands(a *cli.App, agentRun agent.Run) []*cobra.Command {
	return []*cobra.Command{
		run.Command(a), attach.Command(a), attach.Exec(a), suite.Command(a), tasks.Ps(a), tasks.Logs(a), tasks.Wait(a), tasks.Stop(a), tasks.Rm(a), tasks.Prune(a), tasks.Inspect(a), tasks.Port(a), tasks.Why(a), tasks.ReportTail(a), tasks.Events(a), notify.Command(a),
		change.Update(a), change.Hold(a), change.Release(a), change.Suspend(a), change.Resume(a), change.Requeue(a), change.Rerun(a), top.Command(a, change.Top(a)), change.Bottom(a), change.Move(a),
		estimate.Command(a), estimate.Models(a),
		server.GPUs(a), account.Report(a), account.Quota(a), daemon.Command(a), agent.Command(a, agentRun), web.Command(a), doctor.Command(a), mps.Command(a), journal.Command(a), image.Command(a), server.Info(a), server.Config(a), server.Context(a),
		change.Drain(a), change.Undrain(a), change.Pause(a), change.Unpause(a), change.Reserve(a), change.Reservations(a), change.Unreserve(a),
		replay.Command(a), trace.Command(a), tasks.ListHistory(a, journal.History(a)),
		mcp.Command(a), completionCommand(a), versionCommand(a), manCommand(a), agent.OldName(a, agentRun),
	}
}

// New returns carma's command. agentRun is as in [Main].
func New(a *cli.App, agentRun agent.Run) *cobra.Command {
	all := commands(a, agentRun)
	root := cli.Parent(&cobra.Command{
		Use:   "carma COMMAND",
		Short: "Run containers on a shared GPU server, several to a GPU where they fit",
		Long: `carma runs training tasks as containers on the GPUs of this machine. It
estimates each task's GPU memory, puts several tasks on one GPU when memory and
activity allow, and relaunches tasks that ran out of GPU memory.

Exit codes: 0 done, 1 failed, 2 wrong usage or no daemon, 125 carma itself
could not do it; an attached run and wait exit with the task's own code.`,
		Example: `  carma daemon --gpus sim:dgx-station-a100 &
  carma run --est-model resnet50 --batch-size 64 my/training:1 --epochs 3
  carma ps; carma logs -f 17; carma why 17; carma gpus`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}, all...)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { cli.BecomeEarly(cmd) }
	root.AddGroup(cli.Groups()...)
	root.Version = a.Version // the flag --version
	root.SetVersionTemplate("carma {{.Version}}\n")
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpCommand(helpCommand())
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if helpOfNone(cmd) == nil {
			fmt.Fprint(a.Out, helpText(cmd, all))
		}
	})
	settings.AddFlags(root.PersistentFlags(), "socket")
	root.PersistentFlags().String("context", "", "`name` of the daemon to ask, see carma context")
	cli.Complete(root, "context", server.ContextNames)
	root.PersistentFlags().String("config", "", "read this configuration `file` and no other")
	return root
}
