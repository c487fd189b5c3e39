// Package replay contains the command carma replay: traces in virtual time or on the
// daemon, measured pairs, and the published figures. It reads the command line and
// prints; mapper/sim/study runs and measures.
package replay

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/journal"
	"carma/configs/traces"
	"carma/mapper/sim/study"
)

// Command returns the command carma replay.
func Command(a *cli.App) *cobra.Command {
	var measured pairsFlags
	cmd := &cobra.Command{
		Use:     "replay TRACE... [flags]",
		GroupID: cli.GroupExperiments,
		Short:   "Run the tasks of a trace, in virtual time or live, and measure",
		Long:    help,
		Example: examples,
		Args: func(cmd *cobra.Command, args []string) error {
			if measured.given(cmd) {
				return measured.check(cmd, args)
			}
			if len(args) == 0 && !needsNoTrace(cmd) {
				return cli.Usagef("one of "+strings.Join(traces.Names(), ", ")+" or a file", "it takes a trace")
			}
			return cli.NoEmpty(args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			names, _ := cli.Words(traces.Names())(cmd, args, start)
			return names, cobra.ShellCompDirectiveDefault // files as well
		},
	}
	flags := cmd.Flags()
	virtual := addVirtualFlags(cmd)
	live := flags.Bool("live", false, "send the tasks to the daemon as containers")
	l := addLiveFlags(flags)
	published := flags.Bool("published", false, "print our results beside those that CARMA and AEGIS published, and end")
	recorded := flags.String("journal", "", "replay the journal in this data `folder`, check that every decision equals the recorded one, and end")
	listPresets := flags.Bool("presets", false, "list the presets and end")
	files := addFileFlags(flags)
	measured.add(cmd)
	asJSON := cli.JSONFlag(cmd)
	run := func(cmd *cobra.Command, args []string) error {
		if measured.given(cmd) {
			return runPairs(a, measured, *asJSON)
		}
		if err := oneMode(cmd, *live); err != nil {
			return err
		}
		switch {
		case *listPresets:
			return printPresets(a.Out)
		case *published:
			return runPublished(a, *asJSON)
		case flags.Changed("journal"):
			return journal.Verify(a, *recorded, "journal", *asJSON)
		}
		if !*live {
			v, err := newVirtualReplay(a, *virtual, args)
			if err != nil {
				return err
			}
			if err := files.check(args, v.traces()); err != nil {
				return err
			}
			v.files = files
			return runVirtual(a, v, *asJSON)
		}
		l.policy = virtual.Policies
		return runLive(a, cmd, *l, args, *asJSON)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if _, wrong := errors.AsType[*study.Wrong](err); wrong {
			return cli.Usagef("", "%v", err)
		}
		return err
	}
	return cmd
}

// policiesAndPresets completes --policy.
func policiesAndPresets(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	fit, directive := cli.Policies(cmd, args, start)
	for _, p := range study.Presets() {
		if strings.HasPrefix(p.Name, start) {
			fit = append(fit, p.Name+"\t"+p.Doc)
		}
	}
	return fit, directive
}
