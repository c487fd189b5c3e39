package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/suspend"
	"carma/runner/suspend/support"
)

// shelf simulates a suspender. Its state survives the daemon, like the driver's state.
type shelf struct {
	mu    sync.Mutex
	calls []string
	off   map[string]bool // containers that are off their GPUs
	fails []error         // errors of the next calls
	as    []suspend.Outcome
	held  chan struct{} // if not nil, calls wait until it is closed or their context ends
}

func (s *shelf) do(ctx context.Context, call string, c suspend.Container, done suspend.Outcome) (suspend.Result, error) {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return suspend.Result{Outcome: suspend.Unchanged}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	if len(s.fails) > 0 {
		err, as := s.fails[0], s.as[0]
		s.fails, s.as = s.fails[1:], s.as[1:]
		return suspend.Result{Outcome: as}, err
	}
	s.off[c.ID] = done == suspend.Suspended
	return suspend.Result{Outcome: done, Process: suspend.Process{PID: 7, Start: 8}}, nil
}

func (s *shelf) Suspend(ctx context.Context, c suspend.Container, f suspend.Facts) (suspend.Result, error) {
	return s.do(ctx, fmt.Sprintf("suspend %s", units.Bytes(f.Bytes)), c, suspend.Suspended)
}

func (s *shelf) Resume(ctx context.Context, c suspend.Container, p suspend.Process, t suspend.Target) (suspend.Result, error) {
	return s.do(ctx, fmt.Sprintf("resume %d %v", p.PID, t.Pairs), c, suspend.Runs)
}

func (s *shelf) Recover(ctx context.Context, c suspend.Container, want suspend.Outcome, _ suspend.Facts, t suspend.Target) (suspend.Result, error) {
	return s.do(ctx, fmt.Sprintf("recover to %v %v", want, t.Pairs), c, want)
}

func (s *shelf) Thaw(context.Context, suspend.Container) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, "thaw")
	return nil
}

func (s *shelf) Frozen(_ context.Context, c suspend.Container) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off[c.ID], nil
}

func (s *shelf) fail(as suspend.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.as = append(s.fails, err), append(s.as, as)
}

func (s *shelf) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// hold blocks all calls until it is released, or their context ends.
func (s *shelf) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = make(chan struct{})
}

func (s *shelf) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.held)
	s.held = nil
}

// suspendable returns a daemon with a task that runs on one of two GPUs and can be suspended.
func suspendable(t *testing.T, change ...func(*rig)) (g *rig, s *shelf, ref string) {
	s = &shelf{off: map[string]bool{}}
	g = newRig(t, append([]func(*rig){byMemory, func(g *rig) {
		g.cards = newCards(2, 4*units.GiB) // small GPUs, so that the machine needs little memory
		g.opt.Suspending = &support.Options{By: s, Driver: "580.65", Arch: "amd64", Move: true}
	}}, change...)...)
	g.script("stay", untilStopped)
	ref = g.run(api.Submit{Image: "stay", Mem: int64(3 * units.GiB), HostMem: int64(units.GiB)})
	g.running(ref)
	return g, s, ref
}

func (g *rig) tell(ev model.Event) {
	g.t.Helper()
	if err := g.loop.Do(g.ctx(), loop.Fact(ev)); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) suspend(task model.TaskID) {
	g.t.Helper()
	g.tell(model.SuspendAsked{At: g.Clock.Now(), Task: task, By: "ann"})
}

func (g *rig) resumeTask(task model.TaskID) {
	g.t.Helper()
	g.tell(model.ResumeAsked{At: g.Clock.Now(), Task: task, By: "ann"})
}

func (g *rig) inPhase(ref string, p model.Phase) {
	g.t.Helper()
	g.eventually("in phase "+string(p), func() bool {
		rec, err := g.find.Find(ref)
		return err == nil && rec.Task.Phase == p
	})
}

// TestSuspendAndResume: a task is suspended, another takes its GPU, and it resumes on the other
// one. Its container's memory limit includes room for the copy only while it is suspended. The
// attempt stays the same.
func TestSuspendAndResume(t *testing.T) {
	g, s, ref := suspendable(t)
	g.suspend(1)
	g.inPhase(ref, model.Suspended)
	next := g.run(api.Submit{Image: "stay", Mem: int64(3 * units.GiB)})
	if at := g.running(next).Attempts[0].GPUs; at[0].Index != 0 {
		t.Errorf("the next task runs on %+v", at)
	}
	g.resumeTask(1)
	g.inPhase(ref, model.Running)
	equal(t, "calls", s.said(), []string{"suspend 3.0 GiB", "resume 7 [{GPU-a GPU-b}]"})
	const own = int64(units.GiB)
	equal(t, "memory", g.engine.Memory(label.ContainerName(g.instance, 1, 1)), []int64{own + int64(3*units.GiB), own})
	g.restart() // its container has the labels of the GPU on which it began
	rec, err := g.find.Find(ref)
	if err != nil || rec.Task.Phase != model.Running || len(rec.Task.Attempts) != 1 || rec.Task.Last().Grants[0].GPU != "GPU-b" {
		t.Errorf("after a restart: %+v, %v", rec.Task, err)
	}
	line, err := g.api.Timeline(g.ctx(), time.Time{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	moved := line.Runs[slices.IndexFunc(line.Runs, func(r api.Run) bool { return r.Task == 1 })]
	slices.Sort(moved.GPUs)
	equal(t, "GPUs of the run that moved", moved.GPUs, []int{0, 1})
	if s := moved.Stays; len(s) != 2 || s[0].GPUs[0] != 0 || !s[0].From.Equal(moved.From) || s[1].GPUs[0] != 1 || !s[1].From.After(s[0].Until) || !s[1].Until.IsZero() {
		t.Errorf("where it was: %+v", s)
	}
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if last := g.finished(ref); last.Phase != "cancelled" || len(last.Attempts) != 1 {
		t.Errorf("it ended as %s after %d attempts", last.Phase, len(last.Attempts))
	}
}

// TestSuspendFails: the end of a failed suspend or resume is reported, and the task
// continues or starts again.
func TestSuspendFails(t *testing.T) {
	long(t)
	t.Run("it runs on", func(t *testing.T) {
		g, s, ref := suspendable(t)
		s.fail(suspend.Runs, errors.New("the driver is busy"))
		g.suspend(1)
		g.eventually("it runs on, and says why", func() bool {
			rec, err := g.find.Find(ref)
			return err == nil && rec.Task.Phase == model.Running && rec.Task.Reason.Code == model.ReasonNotSuspended && rec.Task.Reason.Text == "the driver is busy"
		})
		const own = int64(units.GiB)
		equal(t, "memory", g.engine.Memory(label.ContainerName(g.instance, 1, 1)), []int64{own + int64(3*units.GiB), own})
	})
	t.Run("no room for it", func(t *testing.T) {
		g, s, ref := suspendable(t)
		g.engine.FailNext("memory", errors.New("no such file"))
		g.suspend(1)
		g.eventually("it runs on, and says why", func() bool {
			rec, err := g.find.Find(ref)
			return err == nil && rec.Task.Phase == model.Running && strings.Contains(rec.Task.Reason.Text, "no such file")
		})
		equal(t, "calls", s.said(), nil)
	})
	t.Run("it stays away", func(t *testing.T) {
		g, s, ref := suspendable(t)
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		s.fail(suspend.Suspended, errors.New("out of memory"))
		g.resumeTask(1)
		g.inPhase(ref, model.Running) // at the second try
		equal(t, "calls", s.said(), []string{"suspend 3.0 GiB", "resume 7 []", "resume 7 []"})
	})
	t.Run("it is lost", func(t *testing.T) {
		for _, back := range []bool{false, true} {
			g, s, ref := suspendable(t)
			if back {
				g.suspend(1)
				g.inPhase(ref, model.Suspended)
			}
			s.fail(suspend.Lost, errors.New("failed"))
			if back {
				g.resumeTask(1)
			} else {
				g.suspend(1)
			}
			last := g.until(ref, "started again", func(t api.Task) bool { return len(t.Attempts) == 2 && t.Phase == "running" })
			if a := last.Attempts[0]; a.Outcome != string(model.ExitInfrastructure) || !strings.Contains(a.Message, "lost while it was suspended: failed") {
				t.Errorf("the first attempt ended as %s: %s", a.Outcome, a.Message)
			}
		}
	})
	t.Run("nobody can be asked", func(t *testing.T) {
		g, s, ref := suspendable(t)
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		s.fail(suspend.Lost, fmt.Errorf("state: %w", &suspend.Unavailable{Why: "no helper"}))
		g.resumeTask(1)
		g.inPhase(ref, model.Running)
	})
}

// TestStopSuspended checks that stopping a suspended task thaws its threads, so that they get
// the signal. A task that is being suspended is resumed first.
func TestStopSuspended(t *testing.T) {
	t.Run("away", func(t *testing.T) {
		g, s, ref := suspendable(t)
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		g.restart()
		g.stopAndCancel(ref)
		if !slices.Contains(s.said(), "thaw") {
			t.Errorf("calls: %q", s.said())
		}
	})
	t.Run("on the way", func(t *testing.T) {
		g, s, ref := suspendable(t)
		s.hold()
		g.suspend(1)
		g.inPhase(ref, model.Suspending)
		g.stopAndCancel(ref)
	})
}

func (g *rig) stopAndCancel(ref string) {
	g.t.Helper()
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		g.t.Fatal(err)
	}
	if last := g.finished(ref); last.Phase != "cancelled" || len(last.Attempts) != 1 {
		g.t.Errorf("it ended as %s (%s) after %d attempts", last.Phase, last.Reason, len(last.Attempts))
	}
}

// TestRestartSuspended checks that the next daemon finishes a suspend or a resume that was
// interrupted by the daemon's end, and does not change a suspended task.
func TestRestartSuspended(t *testing.T) {
	long(t)
	t.Run("suspending", func(t *testing.T) {
		g, s, ref := suspendable(t)
		s.hold()
		g.suspend(1)
		g.inPhase(ref, model.Suspending)
		g.stop()
		s.release()
		s.fail(suspend.Lost, &suspend.Unavailable{Why: "no helper"}) // it asks again
		g.start()
		g.inPhase(ref, model.Suspended)
		equal(t, "calls", s.said(), []string{"recover to suspended []", "recover to suspended []"})
	})
	t.Run("away", func(t *testing.T) {
		g, s, ref := suspendable(t)
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		g.restart()
		g.resumeTask(1)
		g.inPhase(ref, model.Running)
		equal(t, "calls", s.said(), []string{"suspend 3.0 GiB", "recover to runs []"})
	})
	t.Run("resuming", func(t *testing.T) {
		g, s, ref := suspendable(t)
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		next := g.run(api.Submit{Image: "stay", Mem: int64(3 * units.GiB)})
		g.running(next)
		s.hold()
		g.resumeTask(1)
		g.inPhase(ref, model.Resuming)
		g.stop()
		s.release()
		g.start()
		g.inPhase(ref, model.Running)
		equal(t, "calls", s.said(), []string{"suspend 3.0 GiB", "recover to runs [{GPU-a GPU-b}]"})
	})
	t.Run("its container ended meanwhile", func(t *testing.T) {
		g, _, ref := suspendable(t)
		g.suspend(1)
		g.inPhase(ref, model.Suspended)
		g.stop()
		found, err := g.engine.List(g.ctx(), map[string]string{label.Task: "1"})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := g.engine.Kill(g.ctx(), found[0].ID); err != nil {
			t.Fatal(err)
		}
		g.start()
		g.until(ref, "started again", func(t api.Task) bool { return len(t.Attempts) == 2 && t.Phase == "running" })
	})
}

// TestSuspendKind checks that the core learns on which GPUs tasks can be suspended, and which
// tasks.
func TestSuspendKind(t *testing.T) {
	long(t)
	mig := func(g *rig) { g.cards.devices[1].Parent = "GPU-card" }
	for name, tc := range map[string]struct {
		change func(*rig)
		want   []string
	}{
		"it can":       {func(*rig) {}, []string{"move", "move"}},
		"not at all":   {func(g *rig) { g.opt.Suspending = nil }, []string{"", ""}},
		"no use":       {func(g *rig) { g.opt.NoSuspending, g.opt.Suspending = "there is a reason", nil }, []string{"", ""}},
		"old driver":   {func(g *rig) { g.opt.Suspending.Driver = "565.57.01" }, []string{"", ""}},
		"no moving":    {func(g *rig) { g.opt.Suspending.Driver = "570.86.10" }, []string{"here", "here"}},
		"not wanted":   {func(g *rig) { g.opt.Suspending.Move = false }, []string{"here", "here"}},
		"switched off": {func(g *rig) { g.opt.Suspending.Off = true }, []string{"", ""}},
		"arm64":        {func(g *rig) { g.opt.Suspending.Arch = "arm64" }, []string{"", ""}},
		"MIG":          {mig, []string{"move", ""}},
		"ready":        {func(g *rig) { g.opt.Suspending.Ready = func(context.Context) error { return nil } }, []string{"move", "move"}},
		"not ready": {func(g *rig) {
			g.opt.Suspending.Ready = func(context.Context) error { return errors.New("no library") }
		}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, func(g *rig) {
				g.opt.Suspending = &support.Options{By: &shelf{off: map[string]bool{}}, Driver: "580.65", Arch: "amd64", Move: true}
				tc.change(g)
			})
			var kinds []string
			g.eventually(fmt.Sprintf("kinds %q", tc.want), func() bool {
				kinds = nil
				_ = g.loop.Look(g.ctx(), func(s *mapper.State) {
					for _, gpu := range s.GPUs() {
						kinds = append(kinds, string(gpu.Suspend))
					}
				})
				return slices.Equal(kinds, tc.want)
			})
		})
	}
}

// TestSuspendIsAnswered checks that a suspend in the journal that this daemon cannot carry out
// gets an outcome.
func TestSuspendIsAnswered(t *testing.T) {
	g, s, ref := suspendable(t)
	s.hold()
	g.suspend(1)
	g.inPhase(ref, model.Suspending)
	g.stop()
	g.opt.Suspending = nil
	g.start()
	g.eventually("it runs on, and says why", func() bool {
		rec, err := g.find.Find(ref)
		return err == nil && rec.Task.Phase == model.Running && strings.Contains(rec.Task.Reason.Text, "this daemon cannot suspend")
	})
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
