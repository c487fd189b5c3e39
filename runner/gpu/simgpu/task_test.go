package simgpu

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/gpu/simgpu/client"
	"carma/runner/gpu/simgpu/wire"
)

// taskVariable makes this test's program a task, on the server in that folder.
const taskVariable = "CARMA_TEST_SIMGPU_TASK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(taskVariable); dir != "" {
		if err := playTask(dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// playTask executes the lines of its input, and answers each with one.
func playTask(dir string) error {
	c, err := client.Dial(context.Background(), client.Options{
		Dir: dir, Task: 1, Attempt: 1, GPUs: []string{"0"}, Loads: []wire.Load{heavy}, Window: time.Minute,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var gib units.Bytes
		word, amount, _ := strings.Cut(in.Text(), " ")
		fmt.Sscan(amount, &gib)
		switch word {
		case "alloc":
			fmt.Println(c.Alloc(context.Background(), 0, gib*units.GiB))
		case "later": // an allocation that is answered when there is an answer
			go func() { fmt.Println(c.Alloc(context.Background(), 0, gib*units.GiB)) }()
			time.Sleep(10 * time.Millisecond)
			fmt.Println("asked")
		case "passed":
			fmt.Printf("%.9f\n", c.Passed().Training)
		}
	}
	return nil
}

// task is a separate process on a simulated GPU.
type task struct {
	testing.TB
	cmd *exec.Cmd
	in  *bufio.Writer
	out chan string
}

func newTask(t testing.TB, dir string, gib int) *task {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), taskVariable+"="+dir, "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &task{t, cmd, bufio.NewWriter(in), make(chan string, 100)}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.out <- lines.Text()
		}
		close(p.out)
	}()
	t.Cleanup(p.kill)
	if got := p.ask("alloc %d", gib); got != "<nil>" {
		t.Fatal(got)
	}
	return p
}

func (p *task) pid() int { return p.cmd.Process.Pid }

func (p *task) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func (p *task) say(format string, args ...any) {
	fmt.Fprintf(p.in, format+"\n", args...)
	p.in.Flush()
}

func (p *task) answer() string {
	p.Helper()
	select {
	case line := <-p.out:
		return line
	case <-time.After(30 * time.Second):
		p.Fatal("the task says nothing")
	}
	return ""
}

func (p *task) ask(format string, args ...any) string {
	p.Helper()
	p.say(format, args...)
	return p.answer()
}

// passed returns the seconds it has trained.
func (p *task) passed() (seconds float64) {
	p.Helper()
	if _, err := fmt.Sscan(p.ask("passed"), &seconds); err != nil {
		p.Fatal(err)
	}
	return seconds
}

// stop and cont freeze the process and let it run again, as a container's freezer does.
func (p *task) stop() { p.signal(syscall.SIGSTOP, 'T') }
func (p *task) cont() { p.signal(syscall.SIGCONT, 0) }

func (p *task) signal(s syscall.Signal, state byte) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
	eventually(p, "it is stopped", func() bool { return state == 0 || stateOf(p.pid()) == state })
}

// stateOf returns the state of a process in /proc.
func stateOf(pid int) byte {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return (rest + " ")[0]
}
