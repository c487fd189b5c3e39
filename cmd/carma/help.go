package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// groups order the commands in carma --help.
var groups = []struct {
	title string
	names []string
}{
	{"Tasks", []string{"run", "suite", "ps", "logs", "wait", "stop", "rm", "inspect", "why"}},
	{"Memory", []string{"estimate", "models"}},
	{"Server", []string{"gpus", "daemon", "doctor", "mps", "journal", "image", "info", "config"}},
	{"Experiments", []string{"replay", "trace", "history"}},
	{"Other", []string{"completion", "version"}},
}

const helpWidth = 80

// helpText is what --help prints.
func helpText(cmd *cobra.Command) string {
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
	writeCommands(&b, cmd)
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", cmd.LocalFlags().FlagUsagesWrapped(helpWidth))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(&b, "\nGlobal flags:\n%s", cmd.InheritedFlags().FlagUsagesWrapped(helpWidth))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help tells more about one.\n", cmd.CommandPath())
	}
	return b.String()
}

// writeCommands lists the commands: carma's own in groups.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	line := func(c *cobra.Command) { fmt.Fprintf(b, "  %-12s%s\n", c.Name(), c.Short) }
	if cmd.HasParent() {
		if cmd.HasAvailableSubCommands() {
			b.WriteString("\nCommands:\n")
		}
		for _, c := range cmd.Commands() {
			line(c)
		}
		return
	}
	for _, g := range groups {
		fmt.Fprintf(b, "\n%s:\n", g.title)
		for _, name := range g.names {
			if c := subcommand(cmd, name); c != nil {
				line(c)
			}
		}
	}
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name && c.IsAvailableCommand() {
			return c
		}
	}
	return nil
}

// helpCommand is carma help, for those who expect it.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Tell about a command", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			about := cmd.Root()
			if len(args) > 0 {
				if about = subcommand(about, args[0]); about == nil {
					return unknownCommand(cmd.Root(), args[0])
				}
			}
			return about.Help()
		},
	}
}
