package root

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
)

// TestHelpGroups: each command names its group, and carma --help shows it exactly once, in that
// group.
func TestHelpGroups(t *testing.T) {
	a := cli.New(nil, nil, nil, "")
	root := New(a, nil)
	text := helpText(root, commands(a, nil))
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		if !root.ContainsGroup(c.GroupID) {
			t.Errorf("carma %s has no group; give it a GroupID of cmd/carma/cli", c.Name())
		}
		if n := strings.Count(text, "\n  "+c.Name()+" "); n != 1 {
			t.Errorf("carma --help shows carma %s %d times", c.Name(), n)
		}
	}
}

// TestHelpOfEach: each command prints its own help with --help or -h, and not the help of
// its parent.
func TestHelpOfEach(t *testing.T) {
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, flag := range []string{"--help", "-h"} {
			var out, errs bytes.Buffer
			path := cmd.CommandPath()
			code := Execute(cli.New(strings.NewReader(""), &out, &errs, "test"), append(strings.Fields(path)[1:], flag), nil)
			if code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "Usage:\n  "+path) {
				t.Errorf("%s %s: exit code %d: %.60q %s", path, flag, code, out.String(), errs.String())
			}
			for line := range strings.Lines(out.String()) { // a space: a flag left no space for its description
				if line = strings.TrimSuffix(line, "\n"); strings.HasSuffix(line, " ") {
					t.Errorf("%s %s: %q ends with a space", path, flag, line)
				}
			}
		}
		for _, c := range cmd.Commands() {
			if !c.Hidden {
				each(c)
			}
		}
	}
	each(New(cli.New(nil, nil, nil, ""), nil))
}
