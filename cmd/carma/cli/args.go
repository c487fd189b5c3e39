package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// NoArgs checks that a command has no arguments.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("it takes none", "unexpected argument %q", args[0])
	}
	return nil
}

// NoEmpty refuses arguments without a text.
func NoEmpty(args []string) error {
	if slices.Contains(args, "") {
		return Usagef("tasks have a number and a name", "empty task name")
	}
	return nil
}
