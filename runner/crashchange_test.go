//go:build failpoints

package runner

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"carma/internal/failpoint"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/label"
	"carma/runner/verify"
)

// TestCrashKeepsChanges kills the daemon at each point of a change by a user: the next daemon
// must have an acknowledged change, and a change without an answer must either exist or be
// possible again. Later daemons must have it too: after a daemon that was killed while it
// stored a snapshot, and after one that stopped normally. The journal must pass its check
// afterwards.
func TestCrashKeepsChanges(t *testing.T) {
	defer failpoint.Set(func(string, bool) error { return nil })
	for _, point := range []string{"journal-commit-begins", "journal-commit-written", "journal-commit-synced", "events-stored", "decisions-stored", answered} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, t.TempDir(), 1, nil)
				defer w.engine.Shutdown()
				w.excuses = func(error) bool { return true }
				for i, change := range changesByPeople {
					w.start("", 0)
					delay := 10 * time.Hour
					if change.runs {
						delay = 0
					}
					made, err := w.life.admission.Submit(t.Context(), root, api.Submit{Image: "long", Mem: 1 << 30, Delay: delay})
					if err != nil {
						t.Fatal(err)
					}
					w.acked[made.ID] = "long"
					ref := model.TaskID(made.ID).String()
					synctest.Wait()
					for change.runs && !onTask(t, w.life.Runner, ref, func(task *model.Task) bool { return task.Phase == model.Running }) {
						time.Sleep(time.Second)
					}
					if change.before != nil {
						if err := change.before(t.Context(), w.life.Runner, ref); err != nil {
							t.Fatal(err)
						}
					}
					w.life.point, w.life.nth = point, 1
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					err = change.make(ctx, w.life.Runner, ref)
					cancel()
					w.life.die()
					w.end()
					w.start("", 0)
					if point == answered && err != nil {
						t.Errorf("change %d: %v", i, err)
					}
					if there := change.there(t, w.life.Runner, ref); !there && err == nil {
						t.Errorf("change %d was answered and is not there", i)
					} else if !there {
						if err := change.make(t.Context(), w.life.Runner, ref); err != nil || !change.there(t, w.life.Runner, ref) {
							t.Errorf("change %d cannot be made again: %v", i, err)
						}
					}
					w.life.die()
					w.end()
					for _, end := range []string{"snapshot-begins", "snapshot-stored", "orderly"} {
						w.start("", 0)
						w.life.point, w.life.nth = end, 1
						w.end()
						w.start("", 0)
						if !change.there(t, w.life.Runner, ref) {
							t.Errorf("change %d is not there after the end %q", i, end)
						}
						w.life.die()
						w.end()
					}
				}
				if v, err := verify.Journal(w.dir, "test-0"); err != nil || len(v.Faults) > 0 {
					t.Errorf("the journal is not sound: %v %+v", err, v)
				}
			})
		})
	}
}

// TestCrashKeepsLimits kills the daemon at each point of a change of a running task's limits:
// with the next daemon the allocation and the container's limits must agree, and they must be
// the requested ones if the request was answered.
func TestCrashKeepsLimits(t *testing.T) {
	defer failpoint.Set(func(string, bool) error { return nil })
	for _, point := range []string{"journal-commit-begins", "journal-commit-synced", "events-stored", "decisions-stored", "resize-limits", answered} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, t.TempDir(), 1, nil)
				defer w.engine.Shutdown()
				w.excuses = func(error) bool { return true }
				w.start("", 0)
				made, err := w.life.admission.Submit(t.Context(), root, api.Submit{Image: "long", Mem: 1 << 30, HostMem: 256 << 20})
				if err != nil {
					t.Fatal(err)
				}
				w.acked[made.ID] = "long"
				ref, name := model.TaskID(made.ID).String(), label.ContainerName(w.life.instance, model.TaskID(made.ID), 1)
				for !onTask(t, w.life.Runner, ref, func(task *model.Task) bool { return task.Phase == model.Running }) {
					time.Sleep(time.Second)
				}
				w.life.point, w.life.nth = point, 1
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_, err = w.life.admission.Update(ctx, root, ref, api.Update{HostMem: new(int64(64 << 20)), CPUs: new(0.5)})
				cancel()
				w.life.die()
				w.end()
				w.start("", 0)
				time.Sleep(10 * time.Second)
				booked := onTask(t, w.life.Runner, ref, func(task *model.Task) bool { return task.HostMem == 64<<20 && task.CPUs == 500 })
				has, cpus := w.engine.Memory(name), w.engine.CPUs(name)
				given := len(has) > 0 && has[len(has)-1] == 64<<20 && len(cpus) > 0 && cpus[len(cpus)-1].CPUs == 0.5
				if booked != given || point == answered && (err != nil || !booked) || point == "resize-limits" && !booked {
					t.Errorf("the answer was %v; booked: %v, its container was given %d and %+v", err, booked, has, cpus)
				}
				w.life.die()
				w.end()
				if v, err := verify.Journal(w.dir, "test-0"); err != nil || len(v.Faults) > 0 {
					t.Errorf("the journal is not sound: %v %+v", err, v)
				}
			})
		})
	}
}

// answered stands for the time after the daemon's answer; it is not a failpoint of the daemon.
const answered = "answered"

// changesByPeople lists the changes, with a check that each is visible.
var changesByPeople = []struct {
	runs   bool                                                   // the task runs before
	before func(ctx context.Context, r *Runner, ref string) error // called first without a kill, if not nil
	make   func(ctx context.Context, r *Runner, ref string) error
	there  func(t *testing.T, r *Runner, ref string) bool
}{
	{runs: true, make: func(ctx context.Context, r *Runner, ref string) error {
		_, err := r.control.Requeue(ctx, root, ref, api.RequeueRequest{})
		return err
	}, there: func(t *testing.T, r *Runner, ref string) bool {
		return onTask(t, r, ref, func(task *model.Task) bool {
			return task.StopReason.Code == model.ReasonRecalled || len(task.Attempts) > 1 || task.Alive() == nil
		})
	}},
	{before: func(ctx context.Context, r *Runner, ref string) error {
		_, err := r.control.Hold(ctx, root, ref, api.Note{})
		return err
	}, make: func(ctx context.Context, r *Runner, ref string) error {
		_, err := r.control.Release(ctx, root, ref)
		return err
	}, there: func(t *testing.T, r *Runner, ref string) bool {
		return onTask(t, r, ref, func(task *model.Task) bool { return task.Hold == nil })
	}},
	{make: func(ctx context.Context, r *Runner, ref string) error {
		_, err := r.control.Hold(ctx, root, ref, api.Note{Why: "later"})
		return err
	}, there: func(t *testing.T, r *Runner, ref string) bool {
		return onTask(t, r, ref, func(task *model.Task) bool { return task.Hold != nil && task.Hold.Why == "later" })
	}},
	{make: func(ctx context.Context, r *Runner, ref string) error {
		_, err := r.admission.Update(ctx, root, ref, api.Update{Priority: new("low")})
		return err
	}, there: func(t *testing.T, r *Runner, ref string) bool {
		rec, err := r.find.Find(ref)
		return onTask(t, r, ref, func(task *model.Task) bool { return task.Priority == model.Low }) && err == nil && rec.Submit.Priority == "low"
	}},
	{make: func(ctx context.Context, r *Runner, ref string) error {
		_, err := r.admission.Update(ctx, root, ref, api.Update{Name: new("n" + ref), HostMem: new(int64(64 << 20)), CPUs: new(0.5)})
		return err
	}, there: func(t *testing.T, r *Runner, ref string) bool {
		rec, err := r.find.Find("n" + ref)
		return onTask(t, r, ref, func(task *model.Task) bool { return task.HostMem == 64<<20 && task.CPUs == 500 }) && err == nil && rec.Submit.CPUs == 0.5
	}},
	{make: func(ctx context.Context, r *Runner, ref string) error {
		_, err := r.control.Pin(ctx, root, ref, api.PinRequest{GPUs: []string{"1"}})
		return err
	}, there: func(t *testing.T, r *Runner, ref string) bool {
		return onTask(t, r, ref, func(task *model.Task) bool { return slices.Equal(task.Pinned, []model.GPUID{"GPU-b"}) })
	}},
	{make: func(ctx context.Context, r *Runner, _ string) error {
		return r.control.CloseGPUs(ctx, root, api.CloseRequest{GPUs: []string{"0"}, Why: "fan"})
	}, there: func(t *testing.T, r *Runner, _ string) bool {
		return onState(t, r, func(s *mapper.State) bool { c := s.GPUs()[0].Cordon; return c != nil && c.Why == "fan" })
	}},
	{make: func(ctx context.Context, r *Runner, _ string) error {
		return r.control.PauseLaunching(ctx, root, api.CloseRequest{Why: "backup"})
	}, there: func(t *testing.T, r *Runner, _ string) bool {
		return onState(t, r, func(s *mapper.State) bool { return s.Paused() != nil && s.Paused().Why == "backup" })
	}},
	{make: func(ctx context.Context, r *Runner, _ string) error {
		_, err := r.control.Reserve(ctx, root, api.ReserveRequest{GPUs: []string{"1"}, For: "root", Until: r.Clock.Time().Add(100 * time.Hour)})
		return err
	}, there: func(t *testing.T, r *Runner, _ string) bool {
		return onState(t, r, func(s *mapper.State) bool { return len(s.Reservations()) == 1 })
	}},
	{before: func(ctx context.Context, r *Runner, _ string) error {
		return r.control.CloseGPUs(ctx, root, api.CloseRequest{GPUs: []string{"0"}, Why: "fan"})
	}, make: func(ctx context.Context, r *Runner, _ string) error {
		return r.control.CloseGPUs(ctx, root, api.CloseRequest{GPUs: []string{"0"}, Open: true})
	}, there: func(t *testing.T, r *Runner, _ string) bool {
		return onState(t, r, func(s *mapper.State) bool { return s.GPUs()[0].Cordon == nil })
	}},
	{before: func(ctx context.Context, r *Runner, _ string) error {
		return r.control.PauseLaunching(ctx, root, api.CloseRequest{Why: "backup"})
	}, make: func(ctx context.Context, r *Runner, _ string) error {
		return r.control.PauseLaunching(ctx, root, api.CloseRequest{Open: true})
	}, there: func(t *testing.T, r *Runner, _ string) bool {
		return onState(t, r, func(s *mapper.State) bool { return s.Paused() == nil })
	}},
}

func onState(t *testing.T, r *Runner, is func(*mapper.State) bool) (yes bool) {
	t.Helper()
	if err := r.loop.Look(t.Context(), func(s *mapper.State) { yes = is(s) }); err != nil {
		t.Error(err)
	}
	return yes
}

func onTask(t *testing.T, r *Runner, ref string, is func(*model.Task) bool) bool {
	t.Helper()
	return onState(t, r, func(s *mapper.State) bool {
		return slices.ContainsFunc(s.Tasks(), func(task model.Task) bool { return task.ID.String() == ref && is(&task) })
	})
}
