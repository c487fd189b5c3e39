package run

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// own lists flags that probably no program except carma has. They may follow the image.
// All other flags there belong to the program, even if carma has a flag of that name.
var own = []string{"est-model", "host-mem", "shm-size", "stop-grace", "user-label", "visibility"}

// behind sets carma's own flags that directly follow the image. It returns the words of
// the program: the first word that is not such a flag, and all words after it. Two dashes
// there end the flags and are removed. warnings lists carma's flags that are passed to
// the program.
func behind(cmd *cobra.Command, words []string) (program, warnings []string, err error) {
	rest := words
	for len(rest) > 0 {
		f := flagOf(cmd, rest[0])
		if f == nil || !slices.Contains(own, f.Name) {
			break
		}
		n := 2 // the flag and its value
		if strings.Contains(rest[0], "=") {
			n = 1
		}
		given := rest[:min(n, len(rest))]
		if err := cmd.Flags().Parse(given); err != nil {
			return nil, nil, cmd.FlagErrorFunc()(cmd, err)
		}
		rest = rest[len(given):]
	}
	if len(rest) > 0 && rest[0] == "--" {
		return rest[1:], nil, nil
	}
	return rest, left(cmd, rest), nil
}

// left returns a warning for each flag that is passed to the program but was probably
// meant for carma: a flag in own, the batch size if memory is estimated, and any flag of
// carma at the beginning of the program's words.
func left(cmd *cobra.Command, program []string) []string {
	var lines []string
	for i, word := range program {
		if word == "--" {
			break
		}
		f := flagOf(cmd, word)
		if f == nil || f.Changed {
			continue
		}
		estimated := f.Name == "batch-size" && cmd.Flags().Changed("est-model")
		opening := i == 0 && f.Name != "batch-size" && f.Name != "help"
		if line := "--" + f.Name + " behind the image is the program's; for carma, write it before the image"; (slices.Contains(own, f.Name) || estimated || opening) && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// flagOf returns the flag of carma run whose full main name is in a word, or nil.
func flagOf(cmd *cobra.Command, word string) *pflag.Flag {
	name, is := strings.CutPrefix(word, "--")
	name, _, _ = strings.Cut(name, "=")
	if !is || name == "" {
		return nil
	}
	if f := cmd.Flags().Lookup(name); f != nil && f.Name == name {
		return f
	}
	return nil
}
