package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// If this variable is set, the test's own binary acts as carma-init.
const asInit = "TEST_CARMA_INIT"

func TestMain(m *testing.M) {
	if os.Getenv(asInit) != "" {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // as the first process of a container is
		syscall.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// command returns the program with arguments.
func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asInit+"=1", "A=1 2")
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

func code(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func TestHold(t *testing.T) {
	folder := t.TempDir()
	marker := filepath.Join(folder, "in")
	cmd, out := command(t, "hold", folder, "sh", "-c", `cat "$1"; echo "$A $$"; exit 5`, "sh", marker)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{marker, filepath.Join(folder, "release")} { // in this order
		if err := os.WriteFile(name, []byte("late\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pid := cmd.Process.Pid
	err := cmd.Wait()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if code(err) != 5 || len(lines) != 2 || lines[0] != "late" || !strings.HasPrefix(lines[1], "1 2 ") {
		t.Errorf("%v, %q", err, out)
	}
	if !strings.HasSuffix(out.String(), " "+strconv.Itoa(pid)+"\n") {
		t.Errorf("the program is another process than %d: %q", pid, out)
	}
}

// TestInput checks that the program runs in the same process with the pipe as its input, even
// if all writers have closed the pipe before.
func TestInput(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	keeper, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0) // without a second writer the data would be lost when the writer closes the pipe
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	cmd, out := command(t, "input", pipe, "sh", "-c", "cat; echo $$ $#; exit 5", "sh", "a  b")
	err = cmd.Run()
	if want := "one\ntwo\n" + strconv.Itoa(cmd.ProcessState.Pid()) + " 1\n"; code(err) != 5 || out.String() != want {
		t.Errorf("%v, %q, want %q", err, out, want)
	}
}

func TestHoldFails(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "release"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(folder, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"hold", folder, "/no/such/program"}, 127, "/no/such/program"},
		{[]string{"hold", folder, "no-such-program"}, 127, "no-such-program"},
		{[]string{"hold", folder, plain}, 126, plain},
		{[]string{"hold", folder}, 2, "started by carma"},
		{[]string{"input", "/no/such/pipe", "true"}, 127, "/no/such/pipe"},
		{[]string{"input", os.DevNull, "no-such-program"}, 127, "no-such-program"},
		{[]string{"input", os.DevNull}, 2, "started by carma"},
		{nil, 2, "started by carma"},
	} {
		cmd, out := command(t, row.args...)
		if err := cmd.Run(); code(err) != row.code || !strings.Contains(out.String(), row.says) {
			t.Errorf("%q: %v, %q; want code %d", row.args, err, out, row.code)
		}
	}
}

// TestReap: the program's exit code is returned, a signal reaches the program, and its
// orphans are reaped.
func TestReap(t *testing.T) {
	for _, row := range []struct {
		script string
		code   int
	}{{"exit 5", 5}, {"kill -9 $$", 137}, {"trap 'exit 7' INT; kill -INT $PPID; while :; do sleep 0.01; done", 7}} {
		cmd, out := command(t, "reap", "sh", "-c", row.script)
		if err := cmd.Run(); code(err) != row.code {
			t.Errorf("%s: %v, %q; want code %d", row.script, err, out, row.code)
		}
	}
	for args, want := range map[string]int{"/no/such/program": 127, "no-such-program": 127, t.TempDir(): 126} {
		cmd, out := command(t, "reap", args)
		if err := cmd.Run(); code(err) != want || !strings.Contains(out.String(), args) {
			t.Errorf("%s: %v, %q; want code %d", args, err, out, want)
		}
	}
}

// TestReapOrphans: a process whose parent has ended becomes a child of the first
// process, and does not stay a zombie.
func TestReapOrphans(t *testing.T) {
	const script = `orphan=$( (sh -c 'echo $$' &) ); i=0
		while kill -0 $orphan 2>/dev/null; do i=$((i+1)); [ $i -lt 3000000 ] || exit 1; done; echo clean`
	cmd, out := command(t, "reap", "sh", "-c", script)
	if err := cmd.Run(); err != nil || out.String() != "clean\n" {
		t.Errorf("%v, %q", err, out)
	}
}

func TestShow(t *testing.T) {
	bin := t.TempDir()
	smi := "#!/bin/sh\n[ \"$*\" = '--query-gpu=uuid,memory.total --format=csv,noheader,nounits' ] && echo 'GPU-a, 4096'\n"
	if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(smi), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd, out := command(t, "show")
	cmd.Env = append(cmd.Env, "PATH="+bin)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(out.String(), "\n"); !slices.Contains(lines, "env A=1 2") || !slices.Contains(lines, "gpu GPU-a, 4096") {
		t.Errorf("%q", out)
	}
	cmd, out = command(t, "show")
	cmd.Env = append(cmd.Env, "PATH=/none")
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "\nsmi ") {
		t.Errorf("without nvidia-smi: %v, %q", err, out)
	}
}

// TestTrue: the canary's command exits with 0 and prints nothing.
func TestTrue(t *testing.T) {
	cmd, out := command(t, "true")
	if err := cmd.Run(); err != nil || out.Len() != 0 {
		t.Errorf("%v, %q", err, out)
	}
}
