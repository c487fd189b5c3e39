package arguments

import (
	"path"
	"strings"

	"carma/estimator/shell"
)

// flat returns the training command among the commands of a line: the command with the
// most words, the last of several.
func flat(argv []string) (best []string) {
	line := shell.Parse(argv, nil)
	for i := range line.Commands {
		if words := line.Commands[i].Words; len(words) >= len(best) {
			best = words
		}
	}
	return best
}

// argument is one argument of a program: --name value, --name=value or --name.
type argument struct {
	name   string // in lower case, with _ for -
	values []string
}

// value returns its first value, or empty if it has none.
func (a *argument) value() string {
	if len(a.values) == 0 {
		return ""
	}
	return a.values[0]
}

// on reports whether a switch is on. A switch without a value is on.
func (a *argument) on() bool {
	switch strings.ToLower(a.value()) {
	case "", "1", "true", "yes", "y", "t", "on":
		return true
	}
	return false
}

// parsed returns the arguments in words. It omits words before the first argument.
func parsed(words []string) (all []argument) {
	for _, w := range words {
		name, value, assigned := strings.Cut(w, "=")
		switch {
		case len(name) > 2 && strings.HasPrefix(name, "--"):
			a := argument{name: normal(name[2:])}
			if assigned {
				a.values = []string{value}
			}
			all = append(all, a)
		case len(all) > 0:
			last := &all[len(all)-1]
			last.values = append(last.values, w)
		}
	}
	return all
}

func normal(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }

// split divides a command line into the launcher's words and the program's words, which
// begin with the script. A python script has no launcher.
func split(words []string) (launcher, program []string) {
	for i, w := range words {
		base := path.Base(w)
		if strings.HasSuffix(base, ".py") || w == "-m" && !(i+1 < len(words) && isLauncher(words[i+1])) {
			return words[:i], words[i:]
		}
	}
	return nil, words
}

func isLauncher(module string) bool {
	switch module {
	case "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner":
		return true
	}
	return false
}
