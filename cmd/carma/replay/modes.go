package replay

import (
	"slices"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
)

// The flags of the modes of a replay.
var (
	liveOnly    = []string{"speed", "image", "name"}
	virtualOnly = []string{"gpus", "gpu-count", "machines", "estimator", "start-up", "look-ahead", "set", "checkpoint", "sharing", "know", "no-repeats", "coarse", "truth", "suspend", "urgent", "drain", "record"}
	// traceless lists the modes without a trace. The first three are complete modes.
	traceless = []string{"presets", "published", "journal", "check"}
)

func needsNoTrace(cmd *cobra.Command) bool {
	return slices.ContainsFunc(traceless, cmd.Flags().Changed)
}

// oneMode refuses the flags of other modes.
func oneMode(cmd *cobra.Command, live bool) error {
	changed := cmd.Flags().Changed
	for _, name := range liveOnly {
		if !live && changed(name) {
			return cli.Usagef("add --live", "--%s is for a replay on the daemon", name)
		}
	}
	for _, name := range slices.Concat(fileFlags, traceless, virtualOnly) {
		switch {
		case !live || !changed(name):
		case slices.Contains(virtualOnly, name):
			return cli.Usagef("leave it out", "--%s is for a replay in virtual time; the daemon has its own", name)
		default:
			return cli.Usagef("leave it out", "--%s is for a replay in virtual time", name)
		}
	}
	for _, alone := range traceless[:3] {
		if err := onlyThat(cmd, alone); err != nil {
			return err
		}
	}
	return nil
}

// onlyThat refuses flags that a complete mode does not use.
func onlyThat(cmd *cobra.Command, alone string) error {
	flags := cmd.Flags()
	if !flags.Changed(alone) {
		return nil
	}
	if flags.NArg() > 0 {
		return cli.Usagef("leave it out", "--%s takes no trace, not %q", alone, flags.Arg(0))
	}
	for _, name := range slices.Concat([]string{"policy"}, virtualOnly, fileFlags, traceless) {
		if name != alone && flags.Changed(name) {
			return cli.Usagef("leave it out", "--%s has no use with --%s", name, alone)
		}
	}
	return nil
}
