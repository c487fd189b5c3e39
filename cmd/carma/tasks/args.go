// Package tasks contains the commands about tasks of the daemon: ps, logs, wait, stop,
// rm, inspect and why.
package tasks

import (
	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
)

// someTasks checks that at least one task is named.
func someTasks(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("write for example: "+cmd.CommandPath()+" 17", "no task named")
	}
	return cli.NoEmpty(args)
}

func oneTask(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return cli.Usagef("name one", "%d tasks named", len(args))
	}
	return someTasks(cmd, args)
}
