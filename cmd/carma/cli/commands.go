package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/elsewhere"
	"carma/internal/suggest"
)

// The groups of commands in carma --help.
const (
	GroupTasks       = "tasks"
	GroupMemory      = "memory"
	GroupServer      = "server"
	GroupExperiments = "experiments"
	GroupOther       = "other"
)

// Groups returns the groups of commands in the order of carma --help.
func Groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: GroupTasks, Title: "Tasks"}, {ID: GroupMemory, Title: "Memory"}, {ID: GroupServer, Title: "Server"},
		{ID: GroupExperiments, Title: "Experiments"}, {ID: GroupOther, Title: "Other"},
	}
}

// Parent adds subcommands to a command. Alone it prints its help, and it refuses unknown
// subcommands.
func Parent(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return Unknown(cmd, args...)
	}
	cmd.Annotations = map[string]string{parent: "yes"}
	for _, c := range commands {
		c.DisableFlagsInUseLine = true
	}
	cmd.AddCommand(commands...)
	return cmd
}

const parent = "parent"

// IsParent reports whether a command only has subcommands; see [Parent].
func IsParent(cmd *cobra.Command) bool { return cmd.Annotations[parent] != "" }

// Unknown returns the error for words that do not begin with a subcommand of parent.
func Unknown(parent *cobra.Command, args ...string) error {
	var names []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	name := args[0]
	path := strings.Fields(parent.CommandPath())[1:]
	if theirs, is := elsewhere.Command(append(path, args...)); is {
		return Usagef(theirs.Hint(), "unknown command %q", strings.Join(strings.Fields(theirs.Name)[len(path):], " "))
	}
	if near := suggest.Near(name, names); len(near) > 0 {
		return Usagef("did you mean "+parent.CommandPath()+" "+near[0]+"?", "unknown command %q", name)
	}
	return Usagef(parent.CommandPath()+" --help lists them", "unknown command %q", name)
}
