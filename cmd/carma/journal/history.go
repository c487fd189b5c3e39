package journal

import (
	"errors"
	"fmt"
	"io/fs"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/runner/verify"

	"github.com/spf13/cobra"
)

// History returns the command carma history.
func History(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "history [flags] [TASK] | verify",
		GroupID: cli.GroupTasks,
		Short:   "List what has ended, or a task's life; verify replays the journal",
		Long: `List the tasks that have ended, in the order of their ends, the latest last.
Those that were removed are gone from it. carma report sums them up.

With TASK, tell what happened to it and what was decided about it, as the
journal has it: submitted, estimated, held, launched where with what memory,
sent back to the queue and why, suspended, resumed, moved, ended. Of a long life
it tells the first lines and the last, and says what it left out.

With --audit, list what administrators did to the tasks of others and to the
server, allowed or refused, with the latest act last. root sees all acts, others
their own and those on their tasks. With TASK, list the acts on it.

carma history verify replays the daemon's journal and checks its decisions.`,
		Example: "  carma history --since yesterday --mine\n  carma history 17\n  carma history --audit --since 2d\n  carma history verify",
	}, verifyCommand(a))
}

func verifyCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "Replay the journal and check every decision",
		Long: `Replay the journal through the mapper, beside a running daemon or without one.
It checks after every event: no GPU is over-committed, no task has GPUs for two
attempts, no task is lost, and each decision equals the recorded one.
Exits with 1 if a check fails.`,
		Example: "  carma history verify --data-dir /var/lib/carma",
		Args:    cli.NoArgs,
	}
	settings.AddFlags(cmd.Flags(), "data-dir")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, _, err := settings.Load(cmd.Flags())
		if err != nil {
			return err
		}
		return Verify(a, config.DataDir, "data-dir", asJSON)
	}
	return cmd
}

// Verify checks the journal in the folder named by a flag.
func Verify(a *cli.App, dir, flag string, asJSON bool) error {
	v, err := verify.Journal(dir, a.Version)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("name the daemon's folder with --"+flag, "there is no journal in %s", dir)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = a.JSON(v)
	} else {
		err = printVerification(a, v)
	}
	if err == nil && len(v.Faults) > 0 {
		return cli.CodeError(cli.ExitFailed)
	}
	return err
}

func printVerification(a *cli.App, v verify.Result) error {
	fmt.Fprintf(a.Out, "events       %d, from number %d on\n", v.Events, v.First)
	fmt.Fprintf(a.Out, "tasks        %d submitted: %d succeeded, %d failed, %d cancelled, %d unfinished\n",
		v.Submitted, v.Succeeded, v.Failed, v.Cancelled, v.Unfinished)
	fmt.Fprintf(a.Out, "launches     %d, of which %d relaunches; %d GPU OOMs\n", v.Launches, v.Relaunches, v.OOMs)
	if v.Suspended > 0 {
		fmt.Fprintf(a.Out, "suspended    %d times, of which %d came back; %s off their GPUs\n", v.Suspended, v.Resumed, cli.Age(v.SuspendedTime))
	}
	fmt.Fprintf(a.Out, "GPUs         at most %.0f %% of one reserved, at most %d tasks on one\n", 100*v.MostReserved, v.MostTasks)
	if v.Differs == "" {
		fmt.Fprintf(a.Out, "decisions    %d equal to the recorded ones\n", v.Compared)
	} else {
		fmt.Fprintf(a.Out, "decisions    checked as they were recorded: another version decided them; the first difference is that\n             %s\n", v.Differs)
	}
	if len(v.Faults) == 0 {
		fmt.Fprintln(a.Out, "sound: no over-commitment, no parallel attempts, no task lost")
		return nil
	}
	for _, f := range v.Faults {
		fmt.Fprintln(a.Out, "FAULT "+f)
	}
	return nil
}
