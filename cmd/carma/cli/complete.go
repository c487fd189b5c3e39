package cli

import (
	"strings"

	"carma/mapper/policy"

	"github.com/spf13/cobra"
)

// Completion returns the possible next words, and how the shell uses them.
type Completion = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective)

// NoCompletion offers nothing, not even files.
func NoCompletion(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// Words completes words of a fixed list.
func Words(list []string) Completion {
	return func(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, w := range list {
			if strings.HasPrefix(w, start) {
				fit = append(fit, w)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete gives a flag its completion.
func Complete(cmd *cobra.Command, flag string, fn Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err) // no such flag: a bug of carma
	}
}

// Policies completes a policy, with its description.
func Policies(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	var fit []string
	for _, p := range policy.Names() {
		if strings.HasPrefix(p, start) {
			fit = append(fit, p+"\t"+policy.Doc(p))
		}
	}
	return fit, cobra.ShellCompDirectiveNoFileComp
}
