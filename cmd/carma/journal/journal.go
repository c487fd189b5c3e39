// Package journal contains the commands carma journal and carma history, which read the
// daemon's journal without a daemon.
package journal

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/runner/journal"
)

// Command returns the command carma journal.
func Command(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "journal COMMAND",
		GroupID: cli.GroupServer,
		Short:   "Check, back up, restore and repair the daemon's journal",
	}, checkCommand(a), backupCommand(a), restoreCommand(a), repairCommand(a))
}

func checkCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags] [FILE]",
		Short: "Read all of the journal, or of a backup, and tell whether it is sound",
		Long: `Read all of the journal, beside a running daemon or without one: its structure,
the checksum of every row, the chain of its events, and whether it ends where
the daemon last wrote. With FILE, read a backup. Exits with 1 if it is not sound.`,
		Example: "  carma journal check --data-dir /var/lib/carma",
		Args:    cobra.MaximumNArgs(1),
	}
	settings.AddFlags(cmd.Flags(), "data-dir")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := dataDir(cmd)
		if err != nil {
			return err
		}
		what, check := dir, journal.CheckFolder
		if len(args) > 0 {
			what, check = args[0], journal.CheckFile
		}
		stand, err := check(what)
		if errors.Is(err, fs.ErrNotExist) {
			return cli.Usagef("name the daemon's folder with --data-dir", "there is no journal in %s", what)
		}
		if err != nil {
			a.Report(cmd, err)
			return cli.CodeError(cli.ExitFailed)
		}
		a.Printf("%s is sound: %s\n", what, stand)
		return nil
	}
	return cmd
}

func backupCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup [flags] FILE",
		Short: "Write a copy of the journal, also while the daemon runs, and check it",
		Long: `Write a copy of the journal as it is now, beside a running daemon or without
one, and read all of it again. FILE is a new file, or a folder, in which the
copy gets a name with the time. The tasks' output is not in it.`,
		Example: "  carma journal backup --data-dir /var/lib/carma /mnt/backup",
		Args:    oneFile,
	}
	settings.AddFlags(cmd.Flags(), "data-dir")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := dataDir(cmd)
		if err != nil {
			return err
		}
		file, stand, err := journal.Backup(dir, args[0])
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			return cli.Usagef("", "%v", err)
		}
		if err != nil {
			return err
		}
		a.Printf("%s is sound: %s\n", file, stand)
		return nil
	}
	return cmd
}

func restoreCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore [flags] FILE",
		Short: "Put a backup in place of the journal",
		Long: `Put a backup in place of the journal, and keep the old files in a folder beside
it. Tasks that were submitted after the backup are not known any more. If their
containers still run, the daemon does not start, unless --accept-loss lets it
take them in as tasks. None is killed. The daemon must not run meanwhile.`,
		Example: "  carma journal restore --accept-loss --data-dir /var/lib/carma /mnt/backup/carma-20261122-061500.db",
		Args:    oneFile,
	}
	settings.AddFlags(cmd.Flags(), "data-dir")
	accept := acceptLossFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := dataDir(cmd)
		if err != nil {
			return err
		}
		report, err := journal.Restore(dir, args[0], *accept)
		if errors.Is(err, fs.ErrNotExist) {
			return cli.Usagef("", "%v", err)
		}
		return reported(a, report, err)
	}
	return cmd
}

func repairCommand(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "repair [flags]",
		Short: "Cut a damaged journal back to its last sound event",
		Long: `Build a journal from the sound part of a damaged one, up to the last event that
the state can be built from. Without --yes or --accept-loss it only prints what
would be kept and what is lost. The damaged files are kept in a folder beside
it. The daemon must not run meanwhile; its tasks go on.`,
		Example: "  carma journal repair --data-dir /var/lib/carma\n  carma journal repair --accept-loss --data-dir /var/lib/carma",
		Args:    cli.NoArgs,
	}
	settings.AddFlags(cmd.Flags(), "data-dir")
	accept := acceptLossFlag(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "make the change")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := dataDir(cmd)
		if err != nil {
			return err
		}
		report, err := journal.Repair(dir, journal.RepairOptions{Do: yes || *accept, AcceptLoss: *accept, Version: a.Version})
		if errors.Is(err, fs.ErrNotExist) {
			return cli.Usagef("name the daemon's folder with --data-dir", "there is no journal in %s", dir)
		}
		return reported(a, report, err)
	}
	return cmd
}

func acceptLossFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("accept-loss", false, "make the change, and let the next start take in running containers that the journal does not know")
}

func dataDir(cmd *cobra.Command) (string, error) {
	config, _, err := settings.Load(cmd.Flags())
	return config.DataDir, err
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return cli.Usagef("write for example: "+strings.TrimSpace(cmd.Example), "one file must be named")
	}
	return nil
}

// reported prints the steps that were done, even before an error.
func reported(a *cli.App, report []string, err error) error {
	for _, line := range report {
		a.Println(line)
	}
	return err
}
