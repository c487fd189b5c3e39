//go:build e2e

package test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
)

// Memory of the simulated DGX Station's GPUs.
const (
	gpuMemory   = 40 * units.GiB
	gpuHeadroom = 512 * units.MiB // default of headroom
)

// checkContainers compares what the engine saw with what the daemon says. There is one
// container per attempt; it was started once and ended without a signal, with the exit
// code that the daemon has. Two containers of a task never run at once, and no GPU has
// more than fits.
func (s *server) checkContainers() {
	s.t.Helper()
	lives := s.engine.until(s.t, s.instance(), "all containers have ended", func(list []life) bool {
		return !slices.ContainsFunc(list, func(l life) bool { return len(l.starts) > 0 && l.died.IsZero() })
	})
	if len(lives) == 0 {
		s.t.Fatal("the engine saw no container of this daemon")
	}
	tasks := map[int]api.Task{}
	list, err := s.api.Tasks(s.t.Context(), api.ListOptions{All: true})
	if err != nil {
		s.t.Fatal(err)
	}
	attempts := 0
	for _, task := range list {
		tasks[int(task.ID)] = task
		attempts += len(task.Attempts)
	}
	last := life{}
	for _, l := range lives {
		name := fmt.Sprintf("task %d attempt %d", l.task, l.attempt)
		if len(l.starts) != 1 {
			s.t.Errorf("%s: its container was started %d times", name, len(l.starts))
			continue
		}
		if len(l.signals) > 0 && !wasStopped(l, tasks[l.task]) && !s.decidedStop(l.task) {
			s.t.Errorf("%s: its container was sent signal %s", name, strings.Join(l.signals, ", "))
		}
		if last.task == l.task && (last.attempt == l.attempt || l.starts[0].Before(last.died)) {
			s.t.Errorf("%s began at %s, while attempt %d ran until %s", name, l.starts[0], last.attempt, last.died)
		}
		checkEnd(s.t, l, tasks[l.task])
		last = l
	}
	if len(lives) != attempts {
		s.t.Errorf("the daemon tells of %d attempts, the engine of %d containers", attempts, len(lives))
	}
	checkCrowding(s.t, lives)
	s.engine.gone(s.t, s.instance())
}

// wasStopped reports whether carma decided to stop what ran in a container, for the
// sake of its neighbours.
func wasStopped(l life, task api.Task) bool {
	return len(task.Attempts) >= l.attempt && task.Attempts[l.attempt-1].Outcome == "stopped"
}

// decidedStop reports whether the daemon's log has the decision to stop a task. An attempt
// that succeeds before the signal arrives is not stopped for all that.
func (s *server) decidedStop(task int) bool {
	for line := range strings.Lines(s.log.String()) {
		var entry struct {
			Task    int
			Message string
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Task == task && entry.Message == "stop" {
			return true
		}
	}
	return false
}

// checkEnd: if a container failed, it must have run out of GPU memory, or been
// stopped by carma, which may have come at the same moment.
func checkEnd(t *testing.T, l life, task api.Task) {
	t.Helper()
	if len(task.Attempts) < l.attempt {
		t.Errorf("task %d has %d attempts, the engine saw number %d", l.task, len(task.Attempts), l.attempt)
		return
	}
	at := task.Attempts[l.attempt-1]
	want := "ok"
	switch {
	case wasStopped(l, task):
		want = "stopped"
	case l.code != 0:
		want = "gpu-oom"
		if !strings.Contains(l.stderr, "OutOfMemoryError") {
			t.Errorf("task %d attempt %d died with %d: %s", l.task, l.attempt, l.code, l.stderr)
		}
	}
	if at.Outcome != want || at.ExitCode != l.code {
		t.Errorf("task %d attempt %d ended with %d in the engine, for carma with %s and %d", l.task, l.attempt, l.code, at.Outcome, at.ExitCode)
	}
}

// checkCrowding adds up the grants of containers that ran at the same time, for
// each GPU.
func checkCrowding(t *testing.T, lives []life) {
	t.Helper()
	type change struct {
		at    time.Time
		bytes int64
	}
	changes := map[string][]change{}
	for _, l := range lives {
		for _, gpu := range l.gpus {
			changes[gpu] = append(changes[gpu], change{l.starts[0], l.grant}, change{l.died, -l.grant})
		}
	}
	for gpu, list := range changes {
		slices.SortFunc(list, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.bytes, b.bytes)) })
		sum := int64(0)
		for _, c := range list {
			if sum += c.bytes; sum > int64(gpuMemory) {
				t.Errorf("%s: containers with grants of %s ran at the same time, %s are there", gpu, units.Bytes(sum), gpuMemory)
				break
			}
		}
	}
}

// checkOutput compares the output that the daemon kept with the engine's own,
// from a reader that was never killed. It also checks the form of the output.
func (s *server) checkOutput(least int) {
	s.t.Helper()
	for _, l := range s.containers() {
		<-l.read
	}
	compared := 0
	for _, l := range s.containers() {
		r := s.carma("logs", "--attempt", strconv.Itoa(l.attempt), strconv.Itoa(l.task))
		if r.code != 0 {
			s.t.Error(r)
			continue
		}
		// The engine's reader may have missed the end, but not the beginning.
		if !strings.HasPrefix(r.out, l.stdout) || !strings.HasPrefix(r.err, l.stderr) {
			s.t.Errorf("task %d attempt %d: the daemon kept\n%s\nthe engine had\n%s", l.task, l.attempt, r.out, l.stdout)
		}
		if l.stdout != "" {
			compared++
		}
		if strings.Contains(r.out, "batch size") {
			checkTraining(s.t, l, split(r.out))
		}
	}
	if compared < least/2 {
		s.t.Errorf("the output of %d containers only could be compared", compared)
	}
}

// checkTraining checks the output of the simulated task: its header, steps that
// never go back, and its last line.
func checkTraining(t *testing.T, l life, lines []string) {
	t.Helper()
	name := fmt.Sprintf("task %d attempt %d", l.task, l.attempt)
	seen, before := map[string]bool{}, [2]int{}
	steps := 0
	for _, line := range lines {
		var at [2]int
		var epochs, perEpoch int
		if n, _ := fmt.Sscanf(line, "epoch %d/%d step %d/%d", &at[0], &epochs, &at[1], &perEpoch); n != 4 {
			if seen[line] {
				t.Errorf("%s: %q is there twice", name, line)
			}
			seen[line] = true
			continue
		}
		steps++
		if slices.Compare(at[:], before[:]) < 0 {
			t.Errorf("%s: step %v comes after %v", name, at, before)
		}
		before = at
	}
	if l.code == 0 && !strings.HasPrefix(lines[len(lines)-1], "trained ") {
		t.Errorf("%s: the last of %d lines is %q", name, len(lines), lines[len(lines)-1])
	}
	if l.code == 0 && steps < 2 {
		t.Errorf("%s: %d lines of progress", name, steps)
	}
}
