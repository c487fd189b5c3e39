package agent

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carma/cmd/carma/agent"
	"carma/cmd/carma/cli"
)

// asCarma is the environment variable that makes this test program act as carma 1.2.
const asCarma = "AS_CARMA"

func TestMain(m *testing.M) {
	if os.Getenv(asCarma) == "" {
		os.Exit(m.Run())
	}
	a := cli.New(os.Stdin, os.Stdout, os.Stderr, "1.2")
	cmd := agent.Command(a, Apart(a.Version))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	ran, err := cmd.ExecuteContextC(context.Background())
	os.Exit(a.Report(ran, err))
}

// TestApart checks that the command executes the agent's program in the same folder, with the
// same arguments and process id. It does not execute a program that has another version or
// cannot run.
func TestApart(t *testing.T) {
	dir := t.TempDir()
	program, carma := filepath.Join(dir, Program), filepath.Join(dir, "carma")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(carma, text, 0o700); err != nil {
		t.Fatal(err)
	}
	const itself = `"dgx" is not one of`
	for _, c := range []struct{ about, script, want string }{
		{"no program", "", itself},
		{"of this version", "[ \"$1\" = --version ] && echo 1.2 || echo apart: $* $$", "apart: --simulate dgx PID"},
		{"of another version", "[ \"$1\" = --version ] && echo 1.3 || echo apart: $*", itself},
		{"says no version", "exit 1", itself},
	} {
		t.Run(c.about, func(t *testing.T) {
			if c.script != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(carma, "--simulate", "dgx")
			cmd.Env = append(os.Environ(), asCarma+"=yes")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			_ = cmd.Run()
			if said := out.String(); !strings.Contains(said, strings.ReplaceAll(c.want, "PID", strconv.Itoa(cmd.ProcessState.Pid()))) {
				t.Errorf("it said %q, want %q", said, c.want)
			}
		})
	}
}
