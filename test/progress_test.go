//go:build e2e

package test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// newLearning starts a server on which others leave one GPU free. Simulated tasks print at most
// twice per second of wall-clock time, so a lower speed gives more accurate progress.
func newLearning(t *testing.T, speed string) *server {
	t.Helper()
	s := newServer(t, "--policy", "carma", "--speed", speed)
	s.start()
	for range 3 {
		s.running(s.submit("--exclusive", tool, "block:0"))
	}
	return s
}

// bySteps are 50 epochs of 1563 steps.
const bySteps = 50 * 1563

// unknown submits a task of which nothing is known: 50 epochs in a run time, with
// an SM activity, in a form of printing.
func (s *server) unknown(name, form, smact string, alone time.Duration) string {
	s.t.Helper()
	return s.submit("--name", name, image, "resnet18-cifar100-bs32-50e", "--time", alone.String(), "--smact", smact, "--print", form)
}

// sees waits until the progress of a task satisfies a condition.
func (s *server) sees(ref, what string, ok func(api.Task, *api.Progress) bool) api.Task {
	s.t.Helper()
	var task api.Task
	eventually(s.t, "task "+ref+": "+what, func() bool {
		task = s.inspect(ref)
		if task.Finished() {
			s.t.Fatalf("task %s has %s (%s) before %s: %+v", ref, task.Phase, task.Reason, what, task.Attempts)
		}
		return task.Progress != nil && ok(task, task.Progress)
	})
	return task
}

var (
	perSecond = regexp.MustCompile(`([\d.]+)it/s`)
	perStep   = regexp.MustCompile(`([\d.]+)s/it`)
)

// printedRate returns the speed that a task has printed last, in steps per simulated second.
func (s *server) printedRate(ref string) float64 {
	s.t.Helper()
	out, _ := s.lines(ref)
	text := strings.Join(out, "\n")
	last := func(re *regexp.Regexp) (v float64, at int) {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			v, _ = strconv.ParseFloat(text[m[2]:m[3]], 64)
			at = m[0] + 1
		}
		return v, at
	}
	rate, at := last(perSecond)
	if each, later := last(perStep); later > at {
		return 1 / each
	}
	return rate
}

// near fails the test if a value differs by more than 10 %.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got/want-1) <= 0.1) {
		t.Errorf("%s is %.3f, and in truth %.3f", what, got, want)
	}
}

// TestProgress: an unknown task is joined by another within five minutes. Its progress, its
// expected end and its slowdown by the other task are known within 10 %, also after the daemon
// was killed.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := newLearning(t, "20")
	const alone = 20 * time.Minute
	first := s.unknown("first", "tqdm", "0.7", alone)
	second := s.unknown("second", "hf", "0.65", time.Hour)
	began := s.running(first).Started
	joined := s.running(second).Started
	if wait := joined.Sub(began); wait > 5*time.Minute || wait <= 0 {
		t.Errorf("it is joined after %s", wait)
	}

	s.sees(first, "a measured slowdown", func(_ api.Task, p *api.Progress) bool {
		return p.Slowdown != nil && p.Slowdown.Basis == "measured"
	})
	s.kill() // the measurements are in the journal, and the output is read further
	s.start()
	task := s.sees(first, "half of the work", func(_ api.Task, p *api.Progress) bool {
		return p.Share > 0.5 && p.Slowdown != nil && p.ETABasis == "output"
	})
	info, err := s.api.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now, p := info.Now, task.Progress
	slow := bySteps / alone.Seconds() / s.printedRate(first)
	if slow < 1.1 {
		t.Errorf("its neighbour slows it down by %.2f only: this test sees nothing", slow)
	}
	t.Logf("joined after %s; slowdown %.2f, in truth %.2f", joined.Sub(began).Round(time.Second), p.Slowdown.Value, slow)
	near(t, "its slowdown", p.Slowdown.Value, slow)
	if p.Slowdown.Basis != "measured" || len(p.Slowdown.Beside) != 1 || p.Slowdown.Beside[0].Name != "second" || p.Source != "tqdm" || p.Total != bySteps || p.Unit != "steps" {
		t.Errorf("its progress is %+v, its slowdown %+v", p, p.Slowdown)
	}
	if out := s.ok("why", first); !strings.Contains(out, "times as long as alone (measured") || !strings.Contains(out, "progress: ") || !strings.Contains(out, "end: in about ") {
		t.Errorf("carma why:\n%s", out)
	}
	if out := s.ok("ps"); !strings.Contains(out, "PROGRESS") {
		t.Errorf("carma ps:\n%s", out)
	}
	// A third task waits for an exclusive GPU.
	third := s.submit("--exclusive", tool, "out:done")
	if out := s.ok("why", third); !strings.Contains(out, "expected start: ") {
		t.Errorf("carma why:\n%s", out)
	}
	other := s.sees(second, "its progress", func(_ api.Task, p *api.Progress) bool { return p.Share > 0 })
	if other.Progress.Source != "trainer" {
		t.Errorf("the progress of the other is %+v", other.Progress)
	}

	ended := s.succeeded(first)[0]
	end := ended.Ended
	if ended.EnergyJ <= 0 || ended.EnergyJ != ended.Attempts[0].EnergyJ {
		t.Errorf("it has used %v J, its attempts %+v", ended.EnergyJ, ended.Attempts)
	}
	near(t, "the time to its end", p.ETA.Sub(now).Seconds(), end.Sub(now).Seconds())
	near(t, "its share", p.Share, 1-end.Sub(now).Seconds()/(alone.Seconds()*slow))
	s.speed(6000)
	s.succeeded(second)
	s.verified()
}

// TestSlowingNeighbour: a task that slows another down beyond the cap is detected and requeued,
// and that the state of both tasks contains the reason.
func TestSlowingNeighbour(t *testing.T) {
	t.Parallel()
	s := newLearning(t, "60")
	light := s.unknown("light", "tqdm", "0.17", time.Hour)
	s.running(light)
	heavy := s.unknown("heavy", "hf", "0.98", time.Hour)
	began := s.running(heavy).Started
	moved := s.until(heavy, "its move", func(t *api.Task) bool {
		return t.Finished() || t.Phase == "recovering" || len(t.Attempts) > 1
	})
	at := moved.Attempts[0]
	if moved.Finished() || at.Outcome != "stopped" || at.ReasonCode != "slowing" || !at.Blameless {
		t.Fatalf("it is %s: %+v", moved.Phase, moved.Attempts)
	}
	if after := at.Ended.Sub(began); after > 10*time.Minute {
		t.Errorf("it is found after %s", after)
	}
	if out := s.ok("why", heavy); !strings.Contains(out, "task "+light) {
		t.Errorf("carma why:\n%s", out)
	}
	// The light task runs at its speed alone again, and the heavy task runs after it.
	s.sees(light, "its speed alone", func(_ api.Task, p *api.Progress) bool { return p.Slowdown == nil && p.ETABasis == "output" })
	s.speed(6000)
	ended := s.succeeded(light, heavy)
	if again := ended[1].Attempts[1].Started; again.Before(ended[0].Ended) {
		t.Errorf("it came back at %s, and the light one ended at %s", again, ended[0].Ended)
	}
	s.verified()
}
