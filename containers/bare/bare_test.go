package bare

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestArchive: the image is the same at every call, so that making it again does
// not make another.
func TestArchive(t *testing.T) {
	a, err := Archive()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Archive()
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("two images differ, or %v", err)
	}
}

// TestCanaryArchive: the canary's image has its own name and its program.
func TestCanaryArchive(t *testing.T) {
	a, err := CanaryArchive([]byte("\x7fELF canary"))
	if err != nil || !bytes.Contains(a, []byte(CanaryImage)) || !bytes.Contains(a, []byte("\x7fELF canary")) || bytes.Contains(a, []byte(Image)) {
		t.Errorf("%d bytes, %v", len(a), err)
	}
}

// TestEnv checks the variables by which each kind of program finds its environment. A variable
// that the submitter sets takes precedence.
func TestEnv(t *testing.T) {
	for name, c := range map[string]struct {
		p    Program
		have []string
		want string
	}{
		"named":   {Program{Conda: "/home/ann/miniconda3/envs/exp"}, nil, "CONDA_PREFIX=/home/ann/miniconda3/envs/exp CONDA_DEFAULT_ENV=exp CONDA_SHLVL=1 PATH=/home/ann/miniconda3/envs/exp/bin:/home/ann/miniconda3/condabin:" + systemPath},
		"a path":  {Program{Conda: "/scratch/exp"}, nil, "CONDA_PREFIX=/scratch/exp CONDA_DEFAULT_ENV=/scratch/exp CONDA_SHLVL=1 PATH=/scratch/exp/bin:/scratch/exp/condabin:" + systemPath},
		"venv":    {Program{Venv: "/home/ann/v", User: "ann", Home: "/home/ann"}, nil, "VIRTUAL_ENV=/home/ann/v PATH=/home/ann/v/bin:" + systemPath + " HOME=/home/ann USER=ann LOGNAME=ann"},
		"machine": {Program{Home: "/home/ann"}, nil, "PATH=/home/ann/.local/bin:" + systemPath + " HOME=/home/ann"},
		"own":     {Program{Home: "/home/ann"}, []string{"PATH=/mine", "HOMES=x"}, "HOME=/home/ann"},
	} {
		if got := strings.Join(c.p.Env(c.have), " "); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// TestWords: a conda environment's scripts run before the program, which gets its arguments
// unchanged.
func TestWords(t *testing.T) {
	prefix := t.TempDir()
	scripts := filepath.Join(prefix, "etc/conda/activate.d")
	for name, text := range map[string]string{"a.sh": "export A=1", "b.sh": "B=$A$A; export B", "c.fish": "exit 3"} {
		if err := os.MkdirAll(scripts, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(scripts, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(command ...string) string {
		t.Helper()
		p := Program{Conda: prefix, Command: command}
		words := p.Words()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = p.Env(nil)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if got := run("sh", "-c", `echo "$A $B $CONDA_DEFAULT_ENV; $#: $1, $2"`, "sh", "a  b", "$x'"); got != "1 11 "+prefix+"; 2: a  b, $x'\n" {
		t.Errorf("the program saw %q", got)
	}
	if got := run("no-such-program"); !strings.Contains(got, "not found") {
		t.Errorf("a program that is missing: %q", got)
	}
	if err := os.Mkdir(filepath.Join(prefix, "condabin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := run("sh", "-c", `echo "$CONDA_DEFAULT_ENV"`); got != "base\n" {
		t.Errorf("the root environment is called %q", got)
	}
	if got := (Program{Command: []string{"python3"}}).Words(); !slices.Equal(got, []string{"python3"}) {
		t.Errorf("a program of the machine becomes %q", got)
	}
}

// TestFailingScripts: a program runs although scripts of its conda environment fail, and that
// their errors are shown. A script that exits ends the program, as with conda run.
func TestFailingScripts(t *testing.T) {
	for name, row := range map[string]struct {
		text, says string
		code       int
	}{
		"a command":        {"no-such-command --flag", "no-such-command", 0},
		"false":            {"false", "", 0},
		"a return":         {"return 3", "", 0},
		"an option":        {"set -e\nfalse", "", 0},
		"options stay on":  {"set -eu", "", 0},
		"a missing file":   {". /nonexistent/setup.sh", "/nonexistent/setup.sh", 0},
		"not shell at all": {"if then (", "syntax error", 0},
		"an exit":          {"echo not here; exit 3", "not here", 3},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := t.TempDir()
			scripts := filepath.Join(prefix, "etc/conda/activate.d")
			if err := os.MkdirAll(scripts, 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"a.sh": row.text + "\n", "b.sh": "export AFTER=1$NOT_SET_ANYWHERE; false\n"} {
				if err := os.WriteFile(filepath.Join(scripts, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p := Program{Conda: prefix, Command: []string{"sh", "-c", "echo runs $AFTER"}}
			words := p.Words()
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Env = p.Env(nil)
			out, err := cmd.CombinedOutput()
			if runs := strings.HasSuffix(string(out), "runs 1\n"); runs != (row.code == 0) || cmd.ProcessState.ExitCode() != row.code || !strings.Contains(string(out), row.says) {
				t.Errorf("%v, printed %q", err, out)
			}
		})
	}
}
