package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"carma/configs"
	"carma/runner"
)

func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history COMMAND",
		Short: "Look into the daemon's journal",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(a.verifyCommand())
	return cmd
}

func (a *app) verifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "Replay the journal and check every decision",
		Long: `Replay the journal through the mapper, beside a running daemon or without one.
It checks after every event: no GPU is over-committed, no task has GPUs for two
attempts, no task is lost, and each decision equals the recorded one.
Exits with 1 if a check fails.`,
		Example: "  carma history verify --data-dir /var/lib/carma",
		Args:    noArgs,
	}
	configs.AddFlags(cmd.Flags(), "data-dir")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, _, err := configs.Load(cmd.Flags())
		if err != nil {
			return err
		}
		return a.verify(config.DataDir, "data-dir", asJSON)
	}
	return cmd
}

// verify checks the journal in the folder that a flag has named.
func (a *app) verify(dir, flag string, asJSON bool) error {
	v, err := runner.Verify(dir, version)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("name the daemon's folder with --"+flag, "there is no journal in %s", dir)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = a.json(v)
	} else {
		err = a.printVerification(v)
	}
	if err == nil && len(v.Faults) > 0 {
		return codeError(exitFailed)
	}
	return err
}

func (a *app) printVerification(v runner.Verification) error {
	fmt.Fprintf(a.out, "events       %d, from number %d on\n", v.Events, v.First)
	fmt.Fprintf(a.out, "tasks        %d submitted: %d succeeded, %d failed, %d cancelled, %d unfinished\n",
		v.Submitted, v.Succeeded, v.Failed, v.Cancelled, v.Unfinished)
	fmt.Fprintf(a.out, "launches     %d, of which %d relaunches; %d GPU OOMs\n", v.Launches, v.Relaunches, v.OOMs)
	fmt.Fprintf(a.out, "GPUs         at most %.0f %% of one reserved, at most %d tasks on one\n", 100*v.MostReserved, v.MostTasks)
	if v.Differs == "" {
		fmt.Fprintf(a.out, "decisions    %d equal to the recorded ones\n", v.Compared)
	} else {
		fmt.Fprintf(a.out, "decisions    checked as they were recorded: another version decided them; the first difference is that\n             %s\n", v.Differs)
	}
	if len(v.Faults) == 0 {
		fmt.Fprintln(a.out, "sound: no over-commitment, no parallel attempts, no task lost")
		return nil
	}
	for _, f := range v.Faults {
		fmt.Fprintln(a.out, "FAULT "+f)
	}
	return nil
}
