package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/configs"
	"carma/mapper"
	"carma/runner/api"
)

func (a *app) daemonCommand() *cobra.Command { return newDaemonCommand(a.err) }

// newDaemonCommand returns the command that is the daemon. It logs to w and
// runs until SIGINT or SIGTERM; its tasks go on.
func newDaemonCommand(w io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "daemon [flags]",
		Short: "Run the daemon: it queues, places, starts and watches tasks",
		Long: `Run the daemon in the foreground. Ctrl-C or SIGTERM ends it and leaves its tasks
running; the next daemon finds them again. carma daemon --drain asks the running
daemon to start nothing more and to end with its last running task; queued tasks
stay queued. On SIGHUP it reads its configuration again. Every flag can also be
set in /etc/carma/config.yaml, ~/.config/carma/config.yaml or the environment
as CARMA_...; carma config prints the values in force, carma config --example a
file to start from.`,
		Example: `  carma daemon
  carma daemon --gpus sim:dgx-station-a100 --speed 600 --policy magm
  carma daemon --drain`,
		Args: noArgs,
	}
	addDaemonFlags(cmd.Flags())
	complete(cmd, "policy", policies)
	complete(cmd, "booking", words(mapper.Bookings))
	complete(cmd, "order", words(mapper.Orders))
	complete(cmd, "recovery", words(mapper.Recoveries))
	complete(cmd, "gpus", sources)
	complete(cmd, "activity", words(configs.Activities))
	complete(cmd, "driver", words(configs.Drivers))
	complete(cmd, "attach", words(configs.Attachments))
	complete(cmd, "pull", words(configs.PullRules))
	complete(cmd, "log-level", words(configs.LogLevels))
	complete(cmd, "log-format", words(configs.LogFormats))
	drain := cmd.Flags().Bool("drain", false, "ask the running daemon to start nothing more and to end with its last task")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, from, err := configs.Load(cmd.Flags())
		if err != nil {
			return err
		}
		if *drain {
			info, err := api.NewClient(configs.ClientSocket(config, from)).Drain(cmd.Context())
			if err == nil {
				fmt.Fprintf(w, "carma: the daemon (process %d) starts nothing more and ends with its last running task; running %d, %d stay queued\n", info.PID, info.Running, info.Queued+info.Held)
			}
			return err
		}
		ctx, release := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer release()
		defer context.AfterFunc(ctx, release)() // a second Ctrl-C ends it at once
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		again := func() (configs.Config, error) { c, _, err := configs.Load(cmd.Flags()); return c, err }
		return runDaemon(ctx, config, newLogger(config, w), reloading{hup, again})
	}
	return cmd
}

// addDaemonFlags adds a flag for every key but those of all commands.
func addDaemonFlags(flags *pflag.FlagSet) {
	for _, name := range configs.Keys() {
		if name != "socket" {
			configs.AddFlags(flags, name)
		}
	}
}

func newLogger(config configs.Config, w io.Writer) zerolog.Logger {
	if config.LogFormat == "console" || config.LogFormat == "auto" && isTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, NoColor: !isTerminal(w), TimeFormat: "15:04:05.000"}
	}
	level, err := zerolog.ParseLevel(config.LogLevel)
	if err != nil {
		level = zerolog.InfoLevel // configs has checked it
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}
