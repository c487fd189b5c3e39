package root

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"carma/cmd/carma/cli"
)

// silent lists the lines of the tables whose commands cannot be run here.
var silent = []string{"project, profile, variables", "several files", "run or exec in a service"}

// commandsOf returns the commands in the last column of the tables of a page. Each line
// must have one, except the lines in silent.
func commandsOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`(carma [^`]+)`")
	var all []string
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) < 2 {
			continue
		}
		found := quoted.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if what := strings.TrimSpace(cells[0]); len(found) == 0 && what != "" && !strings.HasPrefix(what, "---") && !slices.Contains(silent, what) {
			t.Errorf("no command of carma in the line: %s", line)
		}
		for _, m := range found {
			all = append(all, m[1])
		}
	}
	return all
}

// words splits a command like a shell, with double quotes only.
func words(command string) []string {
	var all []string
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all[1:]
}

// TestComingFrom: each command of docs/coming-from.md exits with code 0.
func TestComingFrom(t *testing.T) {
	all := commandsOf(t, "../../../docs/coming-from.md")
	if len(all) < 130 {
		t.Fatalf("only %d commands found", len(all))
	}
	withEnvironments(t)
	for _, command := range all {
		runs(t, command)
	}
}

// runs runs a command against its own daemon that has one object of each kind, and expects exit
// code 0.
func runs(t *testing.T, command string) {
	t.Run(command, func(t *testing.T) {
		dir, err := os.MkdirTemp("", "c") // short, for the socket
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		d := newFakeDaemon(filepath.Join(dir, "s"))
		defer d.close()
		d.away()
		if err := d.listen(); err != nil {
			t.Fatal(err)
		}
		t.Setenv("CARMA_SOCKET", d.socket)
		var out, errs bytes.Buffer
		if code := Execute(cli.New(strings.NewReader(""), &out, &errs, "test"), words(command), nil); code != 0 {
			t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
		}
	})
}

// withEnvironments gives the test a home with a conda environment exp, and no configuration.
func withEnvironments(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "miniconda3/envs/exp/conda-meta"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("CARMA_CONFIG", os.DevNull)
}
