// Package daemon contains the command carma daemon: it opens the journal, engine, GPUs
// and estimator of the configuration, passes them to the runner, and reads the
// configuration again on SIGHUP. It imports nothing of the lab (test/imports_test.go).
package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/configs/servers"
	"carma/containers/engines"
	"carma/mapper/model"
)

// Command returns the command carma daemon. It logs to stderr and runs until SIGINT or
// SIGTERM; its tasks continue.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "daemon [flags]",
		GroupID: cli.GroupServer,
		Short:   "Run the daemon: it queues, places, starts and watches tasks",
		Long: `Run the daemon in the foreground.

Ctrl-C and SIGTERM end it and leave its tasks running; the next daemon adopts
them. On SIGHUP it reads its configuration again; the log names the keys that
need a restart. carma daemon --drain asks the running daemon to start no more
tasks and to end with its last one; queued tasks stay queued.

Every flag is also a key of /etc/carma/config.yaml and
~/.config/carma/config.yaml, and a variable CARMA_... of the environment. carma
config prints the values in force; carma config --example prints a file to start
from.`,
		Example: `  carma daemon
  carma daemon --gpus sim:dgx-station-a100 --speed 600 --policy magm
  carma daemon --drain`,
		Args: cli.NoArgs,
	}
	cli.DaemonFlags(cmd.Flags())
	cli.Complete(cmd, "policy", cli.Policies)
	cli.Complete(cmd, "booking", cli.Words(model.Bookings))
	cli.Complete(cmd, "order", cli.Words(model.Orders))
	cli.Complete(cmd, "recovery", cli.Words(model.Recoveries))
	cli.Complete(cmd, "gpus", sources)
	cli.Complete(cmd, "web", cli.Words([]string{"auto", "off", "127.0.0.1:7070"}))
	cli.Complete(cmd, "activity", cli.Words(settings.Activities))
	cli.Complete(cmd, "driver", cli.Words(settings.Drivers))
	cli.Complete(cmd, "processors", cli.Words(settings.ProcessorChoices))
	cli.Complete(cmd, "attach", cli.Words(settings.Attachments))
	cli.Complete(cmd, "pull", cli.Words(settings.PullRules))
	cli.Complete(cmd, "log-level", cli.Words(settings.LogLevels))
	cli.Complete(cmd, "log-format", cli.Words(settings.LogFormats))
	drain := cmd.Flags().Bool("drain", false, "ask the running daemon to start nothing more and to end with its last task")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, from, err := settings.Load(cmd.Flags())
		if err != nil {
			return err
		}
		if *drain {
			client, err := cli.Connect(cmd, config, from)
			if err != nil {
				return err
			}
			info, err := client.Drain(cmd.Context())
			if err == nil {
				a.Say("the daemon (process %d) starts nothing more and ends with its last running task; running %d, %d stay queued", info.PID, info.Running, info.Queued+info.Held)
			}
			return err
		}
		if err := checkCluster(config, from); err != nil {
			return err
		}
		if _, here := engines.Named(config.Driver); !here {
			return cli.BecomeKubernetes(cmd)
		}
		ctx, release := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer release()
		defer context.AfterFunc(ctx, release)() // a second Ctrl-C ends the process at once
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		again := func() (settings.Config, error) { return load(cmd.Flags()) }
		return run(ctx, forCluster(config), a.Version, cli.NewLogger(config, a.Err), reloading{asked: hup, load: again})
	}
	return cmd
}

// load reads the configuration like a daemon at its start.
func load(flags *pflag.FlagSet) (settings.Config, error) {
	config, from, err := settings.Load(flags)
	if err != nil {
		return config, err
	}
	return config, checkCluster(config, from)
}

// sources completes the daemon's --gpus.
func sources(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	list := []string{"auto", "nvml", "cluster"}
	for _, name := range servers.Names() {
		list = append(list, "sim:"+name)
	}
	return cli.Words(list)(cmd, args, start)
}
