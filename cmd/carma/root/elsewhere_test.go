package root

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/elsewhere"
	"carma/cmd/carma/run"
)

// TestElsewhere: the hint for a command of another runner names a command of carma that
// runs, and carma has no command of that name itself.
func TestElsewhere(t *testing.T) {
	withEnvironments(t)
	seen := map[string]bool{}
	for _, w := range elsewhere.Commands() {
		if seen[w.Name] {
			t.Errorf("%s is there twice", w.Name)
		}
		seen[w.Name] = true
		if strings.TrimSpace(w.Write+w.Say) == "" {
			t.Errorf("nothing is said of %s", w.Name)
		}
		own := New(cli.New(nil, nil, nil, ""), nil)
		for _, name := range strings.Fields(w.Name) {
			if next := subcommand(own, name); next == nil {
				own = nil
				break
			} else {
				own = next
			}
		}
		if own != nil {
			t.Errorf("%s is a command of carma; nobody will see what is said of it", w.Name)
		}
		if w.Write != "" && !seen[w.Write] {
			seen[w.Write] = true
			runs(t, hasty(w.Write))
		}
	}
}

// hasty changes a command so that it ends although the fake daemon does not carry it out.
func hasty(command string) string {
	command = strings.NewReplacer("my-image:1", "ok", "logs -f", "logs", "run -it", "run -d -it", "requeue ", "requeue --no-wait ", "stop ", "stop --no-wait ").Replace(command)
	if command == "carma daemon" || strings.HasPrefix(command, "carma attach") || command == "carma daemon --drain" {
		return strings.Fields(command)[0] + " " + strings.Fields(command)[1] + " --help"
	}
	return command
}

// TestElsewhereFlags: the hint for a flag of another runner names a flag of that command,
// or a whole command; and the command has no flag of that name itself.
func TestElsewhereFlags(t *testing.T) {
	root := New(cli.New(nil, nil, nil, ""), nil)
	first := regexp.MustCompile(`^(--?)([a-z-]+)`)
	for _, cmd := range root.Commands() {
		seen := map[string]bool{}
		for _, w := range elsewhere.Flags(cmd.Name()) {
			if seen[w.Name] || w.Write+w.Say == "" {
				t.Errorf("carma %s: %s is there twice, or nothing is said of it", cmd.Name(), w.Name)
			}
			seen[w.Name] = true
			if has(cmd, w.Name) || cmd.Name() == "run" && run.DockerHint(w.Name) != "" {
				t.Errorf("carma %s has --%s, or docker run; nobody will see what is said of it", cmd.Name(), w.Name)
			}
			if m := first.FindStringSubmatch(w.Write); m == nil && w.Write != "" {
				command := strings.Fields(w.Write[strings.Index(w.Write, "carma "):])
				if c := subcommand(root, command[1]); c == nil {
					t.Errorf("carma %s %s: %s: no such command", cmd.Name(), w.Name, w.Write)
				} else {
					hasAll(t, c, command[2:])
				}
			} else if m != nil {
				hasAll(t, cmd, []string{m[0]})
			}
		}
	}
}

// hasAll reports flags among words that a command does not have, up to the first word of
// a program.
func hasAll(t *testing.T, cmd *cobra.Command, words []string) {
	t.Helper()
	for _, w := range words {
		if w == "sh" || w == "kill" {
			return
		}
		if name := strings.TrimLeft(w, "-"); name != w && w != "-it" && !has(cmd, name) {
			t.Errorf("carma %s has no %s", cmd.Name(), w)
		}
	}
}

func has(cmd *cobra.Command, name string) bool {
	if len(name) == 1 {
		return cmd.Flags().ShorthandLookup(name) != nil
	}
	return cmd.Flags().Lookup(name) != nil
}
