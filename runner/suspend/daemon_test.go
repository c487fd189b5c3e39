//go:build cgo

package suspend

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	daemonVariable = "CARMA_TEST_SUSPEND_DAEMON" // its folder
	deedVariable   = "CARMA_TEST_SUSPEND_DEED"   // suspend or resume, and where it sticks
)

// stuck is a freezer in which a daemon is when it dies.
type stuck struct {
	*fakeFreezer
	at string // freeze or thaw, before or after
}

func (s stuck) Freeze(ctx context.Context, c Container) error {
	return s.pass(ctx, c, "freeze", s.fakeFreezer.Freeze)
}
func (s stuck) Thaw(ctx context.Context, c Container) error {
	return s.pass(ctx, c, "thaw", s.fakeFreezer.Thaw)
}

func (s stuck) pass(ctx context.Context, c Container, name string, do func(context.Context, Container) error) error {
	if s.at == name+" after" {
		_ = do(ctx, c)
	}
	if strings.HasPrefix(s.at, name) {
		_ = os.WriteFile(filepath.Join(s.dir, "stuck"), nil, 0o644)
		select {} // until it is killed
	}
	return do(ctx, c)
}

// playDaemon is the daemon that dies: it makes one operation on container 1.
func playDaemon() {
	b := benchIn(nil, os.Getenv(daemonVariable), os.Getenv("CARMA_TEST_SUSPEND_LIBRARY"))
	op, at, _ := strings.Cut(os.Getenv(deedVariable), " ")
	b.s.opt.Freezer = stuck{b.freezer, at}
	c, p := Container{ID: id(1), PIDs: []int{1010, 1011}}, Process{PID: 1010, Start: 4711}
	if op == "suspend" {
		_, _ = b.s.Suspend(context.Background(), c, facts)
	} else {
		_, _ = b.s.Resume(context.Background(), c, p, Target{})
	}
	fmt.Println("survived")
}

// TestDaemonDies: the daemon is killed in every step. The next one finishes the
// operation, in either direction, after the old helper has done its call.
func TestDaemonDies(t *testing.T) {
	for _, deed := range []string{
		"suspend state", "suspend lock", "suspend checkpoint", "suspend freeze before", "suspend freeze after",
		"resume thaw before", "resume thaw after", "resume state", "resume restore", "resume unlock",
	} {
		for _, want := range []Outcome{Runs, Suspended} {
			t.Run(deed+"/"+want.String(), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				op, at, _ := strings.Cut(deed, " ")
				from := Running
				if op == "resume" {
					from = Checkpointed
				}
				c, _ := b.cuda(1, from)
				if from == Checkpointed {
					b.freezer.Freeze(t.Context(), c)
				}
				b.die(deed, at)
				r := b.ok(b.s.Recover(t.Context(), c, want, facts, Target{}))
				// The old helper has ended before the new one began. If it had not, it
				// would change something now.
				for b.helpers() > 1 {
					time.Sleep(time.Millisecond)
				}
				b.is(c, r, want, map[Outcome]State{Runs: Running, Suspended: Checkpointed}[want], want == Suspended)
			})
		}
	}
}

// helpers counts the helper processes of the bench, by their command lines.
func (b *bench) helpers() int {
	b.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, path := range all {
		if line, _ := os.ReadFile(path); strings.Contains(string(line), HelperCommand) && strings.Contains(string(line), b.dir+"/lock") {
			n++
		}
	}
	return n
}

// die makes another daemon run an operation, and kills it at a slow point.
func (b *bench) die(deed, at string) {
	b.Helper()
	if !strings.Contains(at, " ") {
		b.fault(Call(at), "delay 500 once")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), daemonVariable+"="+b.dir, deedVariable+"="+deed, "CARMA_TEST_SUSPEND_LIBRARY="+libraries["new"])
	said := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for !b.reached(at) {
		select {
		case <-ended:
			b.Fatalf("it did not get to %s: %s", at, said)
		case <-time.After(time.Millisecond):
		}
	}
	_ = cmd.Process.Kill()
	<-ended
	if said.String() != "" {
		b.Fatal(said)
	}
}

func (b *bench) reached(at string) bool {
	if strings.Contains(at, " ") {
		_, err := os.Stat(filepath.Join(b.dir, "stuck"))
		return err == nil
	}
	text, _ := os.ReadFile(filepath.Join(b.dir, "calls"))
	return strings.Contains(string(text), at+" 1010\n")
}
