package root

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
)

const helpWidth = 80

// helpText returns the output of --help; carma's own lists all commands in their order.
func helpText(cmd *cobra.Command, all []*cobra.Command) string {
	var b strings.Builder
	if text := strings.TrimSpace(cmd.Long); text != "" {
		b.WriteString(text)
	} else {
		b.WriteString(cmd.Short + ".")
	}
	fmt.Fprintf(&b, "\n\nUsage:\n  %s\n", cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	writeCommands(&b, cmd, all)
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", cmd.LocalFlags().FlagUsagesWrapped(helpWidth))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(&b, "\nGlobal flags:\n%s", cmd.InheritedFlags().FlagUsagesWrapped(helpWidth))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help describes one command.\n", cmd.CommandPath())
	}
	return b.String()
}

// writeCommands lists the commands: carma's own in groups.
func writeCommands(b *strings.Builder, cmd *cobra.Command, all []*cobra.Command) {
	line := func(c *cobra.Command) { fmt.Fprintf(b, "  %-11s %s\n", c.Name(), c.Short) }
	if cmd.HasParent() {
		if cmd.HasAvailableSubCommands() {
			b.WriteString("\nCommands:\n")
		}
		for _, c := range cmd.Commands() {
			line(c)
		}
		return
	}
	for _, g := range cmd.Groups() {
		fmt.Fprintf(b, "\n%s:\n", g.Title)
		for _, c := range all {
			if c.GroupID == g.ID {
				line(c)
			}
		}
	}
}

// helpOfNone returns the error for help on an unknown command: carma frobnicate --help.
// Otherwise the parent's help would be printed.
func helpOfNone(cmd *cobra.Command) error {
	asked, _ := cmd.Flags().GetBool("help")
	if !asked || !cli.IsParent(cmd) || cmd.Flags().NArg() == 0 {
		return nil
	}
	return cli.Unknown(cmd, cmd.Flags().Args()...)
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name && c.IsAvailableCommand() {
			return c
		}
	}
	return nil
}

// helpCommand returns carma help, which users of other programs expect.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Tell about a command", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			about := cmd.Root()
			if len(args) > 0 {
				if about = subcommand(about, args[0]); about == nil {
					return cli.Unknown(cmd.Root(), args...)
				}
			}
			return about.Help()
		},
	}
}
