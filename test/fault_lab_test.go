//go:build e2e && failpoints

package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/verify"
)

// lab is a daemon that will die, with tasks that must not notice. A witness,
// independent of the daemon, records which containers are started.
type lab struct {
	*server
	witness witness
	builds  []string // paths of the program; each life of the daemon uses the next one
	options [][]string
	lives   int
	deaths  int
	works   int
	always  []string        // environment of every life
	next    []string        // environment of the life after the next death
	told    map[string]bool // attempts that the daemon has reported, as task.attempt
	removed int             // tasks that it may not have reported, after one attempt each
	excused int             // attempts that a fault was meant to end
	unseen  int             // attempts that the witness may miss, because it listens to the engine that was killed
	more    int             // tasks at stake besides the usual ones
	own     *dockerd
	card    string // the file of the NVML stand-in
}

// witness counts how often the container of each attempt has been started.
type witness interface {
	starts(instance string) map[string]int // by task.attempt
}

// The builds of the daemon with failpoints: this program, and the same with
// first-fit in reverse order, the last GPU first.
var (
	buildWithPoints = sync.OnceValues(func() (string, error) {
		return build("carma-points", "carma/cmd/carma", "-tags", "failpoints", "-ldflags", "-X main.version=points")
	})
	buildOther = sync.OnceValues(func() (string, error) {
		overlay, err := otherOrder()
		if err != nil {
			return "", err
		}
		return build("carma-other", "carma/cmd/carma", "-tags", "failpoints", "-ldflags", "-X main.version=other", "-overlay", overlay)
	})
)

// otherOrder writes an overlay of the source in which first-fit takes the GPU
// with the highest index.
func otherOrder() (path string, err error) {
	source, err := filepath.Abs("../mapper/policy/policy.go")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	const doc = "Name: \"first-fit\", Doc: \"the lowest index that fits\",\n\t\tOrder: "
	const was, is = doc + "func(View, *model.GPU, *model.GPU) int { return 0 }", doc + "func(_ View, a, b *model.GPU) int { return b.Index - a.Index }"
	if strings.Count(string(text), was) != 1 {
		return "", errors.New("mapper/policy/policy.go has no such first-fit")
	}
	changed := filepath.Join(scratch, "policy.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), was, is, 1)), 0o644); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, replace, 0o644)
}

// newLab prepares a daemon whose lives alternate between two builds and two
// sets of options.
func newLab(t *testing.T, flags ...string) *lab {
	t.Helper()
	this, err := buildWithPoints()
	if err != nil {
		t.Fatal(err)
	}
	other := this
	if os.Getenv("OTHER") != "no" {
		if other, err = buildOther(); err != nil {
			t.Fatal(err)
		}
	}
	base := append([]string{"--gpus", "sim:dgx-station-a100", "--speed", "600", "--policy", "first-fit", "--warm-up", "0s", "--backoff", "1s"}, flags...)
	base = slices.Clip(base) // two lists are made from it
	l := &lab{
		server: newServer(t), witness: engine, told: map[string]bool{}, builds: []string{this, other},
		options: [][]string{append(base, "--shrink", "2m"), append(base, "--headroom", "1G", "--smact-cap", "0.99", "--shrink", "1h")},
	}
	return l
}

// up starts the daemon's next life. If it dies during the start, it is started
// again.
func (l *lab) up() {
	l.t.Helper()
	for range 20 {
		l.bin, l.flags = l.builds[l.lives%len(l.builds)], l.options[l.lives%len(l.options)]
		l.lives++
		env := l.env
		l.env = append(slices.Clip(l.always), env...)
		l.launch()
		l.env = env
		if l.comesUp() {
			return
		}
	}
	l.t.Fatal("the daemon does not come up")
}

// comesUp waits until the daemon answers. It returns false if the daemon has died.
func (l *lab) comesUp() bool {
	l.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.exited:
			l.died()
			return false
		case <-deadline:
			l.t.Fatalf("the daemon is not ready within %s", patience)
		case <-tick.C:
		}
		if strings.Contains(l.log.String()[l.life:], "carma is ready") {
			return true
		}
	}
}

// died checks a death: by a signal it was planned; otherwise the daemon gave up,
// which fails the test.
func (l *lab) died() {
	l.t.Helper()
	l.deaths++
	status, _ := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL {
		l.keepLog()
		l.t.Fatalf("the daemon ended with %v", l.cmd.ProcessState)
	}
	l.env, l.next = l.next, nil // a failpoint is used for one death
}

// gone reports whether the daemon has died.
func (l *lab) gone() bool {
	select {
	case <-l.exited:
		return true
	default:
		return false
	}
}

// again repeats an action until it is done, because the daemon may die of it or
// be away. It returns a refusal.
func (l *lab) again(what string, f func(ctx context.Context) error) error {
	l.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(l.t.Context(), 30*time.Second)
		done := make(chan error, 1)
		go func() { done <- f(ctx) }()
		var err error
		select {
		case err = <-done:
		case <-l.exited:
			cancel()
			err = <-done
		}
		cancel()
		var status *api.StatusError
		if err == nil || errors.As(err, &status) && status.Status < 500 {
			return err
		}
		if l.gone() || errors.Is(err, context.Canceled) {
			<-l.exited
			l.died()
			l.up()
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: %v", what, err)
		}
	}
}

// submit submits a task with a name. If an earlier try has submitted it, it does
// nothing.
func (l *lab) submit(s api.Submit) {
	l.t.Helper()
	err := l.again("submit "+s.Name, func(ctx context.Context) error {
		_, err := l.api.Task(ctx, s.Name)
		var status *api.StatusError
		if errors.As(err, &status) && status.Status == 404 {
			_, err = l.api.Submit(ctx, s)
		}
		return err
	})
	if err != nil {
		l.t.Fatalf("submit %s: %v", s.Name, err)
	}
}

// sees waits until a task satisfies a condition.
func (l *lab) sees(name, what string, ok func(api.Task) bool) (last api.Task) {
	l.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		met := false
		err := l.again(name+": "+what, func(ctx context.Context) (err error) {
			last, err = l.api.Task(ctx, name)
			met = err == nil && ok(last)
			return err
		})
		if err != nil {
			l.t.Fatalf("task %s is lost: %v", name, err)
		}
		if met {
			return last
		}
		if time.Now().After(deadline) {
			l.dump()
			l.t.Fatalf("task %s: %s: not within %s; it is %s (%s) %+v", name, what, patience, last.Phase, last.Reason, last.Attempts)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// dump ends a hanging daemon so that it prints all its goroutines, and keeps the
// log of all its lives.
func (l *lab) dump() {
	l.t.Helper()
	_ = l.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-l.exited:
	case <-time.After(time.Minute):
	}
	l.keepLog()
}

// keepLog keeps the daemon's log of all its lives.
func (l *lab) keepLog() {
	l.t.Helper()
	f, err := os.CreateTemp("", "carma-faults-*.log")
	if err != nil {
		l.t.Error(err)
		return
	}
	defer func() { _ = f.Close() }()
	_, _ = f.WriteString(l.log.String())
	l.t.Logf("the daemon's log is in %s", f.Name())
}

func (l *lab) ends(name, phase string) api.Task {
	l.t.Helper()
	task := l.sees(name, "its end", func(t api.Task) bool { return t.Finished() })
	if task.Phase != phase {
		l.t.Errorf("task %s has %s (%s), want %s", name, task.Phase, task.Reason, phase)
	}
	return task
}

func (l *lab) isRunning(names ...string) {
	l.t.Helper()
	for _, name := range names {
		l.sees(name, "its start", func(t api.Task) bool { return t.Phase == "running" || t.Phase == "stopping" || t.Finished() })
	}
}

// train returns a task of the simulated image.
func train(name string, mem units.Bytes, args ...string) api.Submit {
	return api.Submit{Name: name, Image: image, Mem: int64(mem), Command: args, Pull: "never"}
}

// program returns a task of the tests' tool.
func program(name string, args ...string) api.Submit {
	return api.Submit{Name: name, Image: tool, Mem: int64(512 * units.MiB), Command: args, Pull: "never"}
}

// grant returns the memory allocated to the last attempt.
func grant(t api.Task) units.Bytes {
	if len(t.Attempts) == 0 {
		return 0
	}
	return units.Bytes(t.Attempts[len(t.Attempts)-1].Grant)
}

// startedOnce checks that the witness has seen one start of every attempt that
// the daemon reports, and no other start. It returns how many attempts were lost
// and doubled.
func (l *lab) startedOnce() (lost, doubled int) {
	l.t.Helper()
	list := l.tell()
	seen := l.witness.starts(l.instance())
	maps.DeleteFunc(seen, func(_ string, n int) bool { return n == 0 }) // made, but never started
	for _, task := range list {
		for i, a := range task.Attempts {
			n := seen[fmt.Sprintf("%d.%d", task.ID, a.N)]
			if n > 1 {
				doubled++
				l.t.Errorf("task %d attempt %d was started %d times", task.ID, a.N, n)
			}
			if n > 0 && i < len(task.Attempts)-1 { // an attempt that never ran has lost nothing
				if l.excused > 0 {
					l.excused--
					continue
				}
				lost++
				l.t.Errorf("task %s has lost attempt %d: %+v", task.Name, a.N, task.Attempts)
			}
			if n == 0 && i == len(task.Attempts)-1 && a.Outcome != "stopped" && a.Outcome != "cannot-start" {
				if l.unseen > 0 {
					l.unseen--
					continue
				}
				l.t.Errorf("the witness has not seen task %d attempt %d: %+v", task.ID, a.N, a)
			}
		}
	}
	for attempt, n := range seen {
		if n > 1 && !slices.ContainsFunc(list, func(t api.Task) bool { return strings.HasPrefix(attempt, fmt.Sprint(t.ID, ".")) }) {
			doubled++
			l.t.Errorf("attempt %s of a task that was removed was started %d times", attempt, n)
		}
	}
	if told := len(l.told); len(seen) > told+l.removed {
		doubled += len(seen) - told - l.removed
		l.t.Errorf("the witness saw %d attempts, the daemon has told of %d, and %d were removed: %v", len(seen), told, l.removed, seen)
	}
	return lost, doubled
}

// tell lists the tasks and remembers their attempts, because the daemon keeps a
// task for a limited time.
func (l *lab) tell() (list []api.Task) {
	l.t.Helper()
	if err := l.again("list", func(ctx context.Context) (err error) {
		list, err = l.api.Tasks(ctx, api.ListOptions{All: true})
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
	for _, task := range list {
		for _, a := range task.Attempts {
			l.told[fmt.Sprintf("%d.%d", task.ID, a.N)] = true
		}
	}
	return list
}

// term stops the daemon as an operator does. A failpoint may kill it meanwhile.
func (l *lab) term() {
	l.t.Helper()
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-l.exited:
	case <-time.After(patience):
		l.t.Fatal("the daemon does not stop")
	}
	if l.cmd.ProcessState.ExitCode() != 0 {
		l.died()
	}
}

// engineVersion returns the first line of a command's output, for the head of the tables.
func engineVersion(command string) string {
	out, err := exec.Command(command, "--version").Output()
	if err != nil {
		return command + " is missing"
	}
	return strings.TrimSpace(string(out))
}

// verify replays the journal, which must be sound.
func (l *lab) verify() verify.Result {
	l.t.Helper()
	v, err := verify.Journal(l.dir, "")
	if err != nil || len(v.Faults) > 0 {
		l.t.Errorf("the journal is not sound: %v %q", err, v.Faults)
	}
	return v
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
