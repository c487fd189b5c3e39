//go:build cgo

package suspend

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// programOf starts the program of a proof on the stand-in.
func programOf(t *testing.T, dir, library string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0], ProgramCommand, library)
	cmd.Env = append(os.Environ(), "STANDIN="+dir, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

func says(t *testing.T, lines *bufio.Scanner, want string) string {
	t.Helper()
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), want+" ") {
		t.Fatalf("it says %q (%v), want %s", lines.Text(), lines.Err(), want)
	}
	return lines.Text()
}

// TestProgram: the program of a proof finds its memory unchanged while it is suspended
// and resumed, and says so if a word of it has changed.
func TestProgram(t *testing.T) {
	b := newBench(t)
	cmd, lines := programOf(t, b.dir, libraries["new"])
	says(t, lines, ProgramReady)
	says(t, lines, ProgramGood)
	pid := cmd.Process.Pid
	b.process(1, pid)
	b.set(pid, Running)
	c := Container{ID: id(1), PIDs: []int{pid}}
	res, err := b.s.Suspend(t.Context(), c, facts)
	if err != nil || res.Outcome != Suspended {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err = b.s.Resume(t.Context(), c, res.Process, Target{}); err != nil || res.Outcome != Runs {
		t.Fatalf("%+v, %v", res, err)
	}
	says(t, lines, ProgramGood)
	b.write("spoil", "")
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), ProgramBad) {
			break
		}
	}
	if got := lines.Text(); !strings.Contains(got, "word 1000 of its GPU memory was ") {
		t.Errorf("it says %q", got)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
}

// TestProgramWithoutDriver checks that the program reports why it cannot run.
func TestProgramWithoutDriver(t *testing.T) {
	_, lines := programOf(t, t.TempDir(), "/nonexistent/libcuda.so.1")
	if got := says(t, lines, ProgramBad); !strings.Contains(got, "the NVIDIA driver's library cannot be loaded: /nonexistent/libcuda.so.1") {
		t.Errorf("it says %q", got)
	}
}
