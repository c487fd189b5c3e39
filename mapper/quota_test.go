package mapper

import (
	"errors"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestQuotas checks the quotas on a user's concurrent use, and the reasons.
func TestQuotas(t *testing.T) {
	for _, row := range []struct {
		name string
		set  func(*model.Options)
		do   func(w *world) model.TaskID // the last task of ada, which waits
		want string
	}{
		{"tasks", func(o *model.Options) { o.QuotaTasks = 2 }, func(w *world) model.TaskID {
			w.submit(units.GiB, by("ada"))
			w.submit(units.GiB, by("ada"))
			return w.submit(units.GiB, by("ada"))
		}, "quota-tasks name=ada count=2 limit=2"},
		{"one task", func(o *model.Options) { o.QuotaTasks = 1 }, func(w *world) model.TaskID {
			w.submit(units.GiB, by("ada"))
			return w.submit(units.GiB, by("ada"))
		}, "quota-tasks name=ada count=1 limit=1"},
		{"GPUs", func(o *model.Options) { o.QuotaGPUs = 3 }, func(w *world) model.TaskID {
			w.submit(units.GiB, func(r *model.Request) { r.User, r.GPUs = "ada", 2 })
			return w.submit(units.GiB, func(r *model.Request) { r.User, r.GPUs = "ada", 2 })
		}, "quota-gpus name=ada count=2 more=2 limit=3"},
		{"memory", func(o *model.Options) { o.QuotaMemory = 30 * units.GiB }, func(w *world) model.TaskID {
			w.submit(20*units.GiB, by("ada"))
			return w.submit(11*units.GiB, by("ada"))
		}, "quota-memory name=ada have=20.0 GiB need=11.0 GiB of=30.0 GiB"},
		{"memory of a whole GPU", func(o *model.Options) { o.QuotaMemory = 50 * units.GiB }, func(w *world) model.TaskID {
			w.submit(20*units.GiB, by("ada"))
			return w.submit(units.GiB, func(r *model.Request) { r.User, r.Exclusive = "ada", true })
		}, "quota-memory name=ada have=20.0 GiB need=40.0 GiB of=50.0 GiB"},
	} {
		for _, order := range model.Orders {
			t.Run(row.name+"/"+order, func(t *testing.T) {
				opt := plain()
				opt.LookAhead, opt.Ageing, opt.Order = 1, 0, order
				row.set(&opt)
				w := newWorld(t, opt, 4)
				waits := row.do(w)
				w.wantOn(waits)
				if why, _ := w.s.Why(waits); sayWhy(why) != row.want || why.Rule != model.RuleQuota {
					t.Errorf("%+v\nwant %s", why, row.want)
				}
				// It blocks no other task, however long it waits.
				w.wait(time.Hour)
				w.look()
				if other := w.submit(10*units.GiB, by("bob")); w.on(other) == nil {
					t.Error("bob waits for ada's quota")
				}
				w.exit(1, model.ExitOK)
				if w.on(waits) == nil {
					t.Error("it does not start when the quota allows it")
				}
			})
		}
	}
}

// TestQuotaRefused checks that a request that could never start is rejected when
// submitted.
func TestQuotaRefused(t *testing.T) {
	opt := plain()
	opt.QuotaGPUs, opt.QuotaMemory, opt.Slot = 2, 50*units.GiB, time.Hour
	w := newWorld(t, opt, 4)
	for _, row := range []struct {
		r            model.Request
		e            model.Estimate
		option, want string
	}{
		{model.Request{GPUs: 4}, model.Estimate{Memory: units.GiB}, "gpus", "never-quota-gpus count=4 limit=2"},
		{model.Request{GPUs: 2}, model.Estimate{Memory: 30 * units.GiB}, "mem", "never-quota-memory need=60.0 GiB of=50.0 GiB"},
		{model.Request{GPUs: 2, Exclusive: true}, model.Estimate{Memory: units.GiB}, "exclusive", "never-quota-alone need=80.0 GiB of=50.0 GiB count=2"},
		{model.Request{GPUs: 2}, model.Estimate{WholeGPU: true}, "exclusive", "never-quota-alone need=80.0 GiB of=50.0 GiB count=2"},
		{model.Request{Slot: 2 * time.Hour}, model.Estimate{Memory: units.GiB}, "slot", "slot-too-long span=2h0m0s most=1h0m0s"},
		{model.Request{GPUs: 2, Slot: time.Minute}, model.Estimate{Memory: 25 * units.GiB}, "", ""},
	} {
		err := w.s.Check(row.r, row.e)
		var no *model.ImpossibleError
		if row.want == "" && err != nil || row.want != "" && (!errors.As(err, &no) || no.Option != row.option || say(no.Reason) != row.want) {
			t.Errorf("%+v: %v, want %s", row.r, err, row.want)
		}
	}
	id := w.submit(units.GiB, gpus(3))
	w.wantFailed(id, "never-quota-gpus count=3 limit=2")
}

// TestQuotaAfterOOM checks that a task whose first run shows that it needs more than its
// quota fails instead of waiting indefinitely.
func TestQuotaAfterOOM(t *testing.T) {
	opt := plain()
	opt.QuotaMemory = 20 * units.GiB
	w := newWorld(t, opt, 1)
	id := w.submit(15*units.GiB, by("ada"))
	w.exitWith(model.Exited{Task: id, Class: model.ExitGPUOOM, Demand: 18 * units.GiB})
	w.wantFailed(id, "never-quota-memory need=23.5 GiB of=20.0 GiB <- gpu-oom <- wanted-more have=15.0 GiB need=18.0 GiB")
}

// TestQuotaInWalk checks that a task does not count for the look-ahead if it did not fit and a
// later launch has used up its user's quota. Then another task that fits is started.
func TestQuotaInWalk(t *testing.T) {
	opt := plain()
	opt.LookAhead, opt.QuotaGPUs = 2, 2
	w := newWorld(t, opt, 3)
	asks := func(user string, gpus int) model.TaskID {
		return w.submit(30*units.GiB, func(r *model.Request) { r.User, r.GPUs, r.NoGPU = user, gpus, gpus == 0 })
	}
	asks("eve", 2)
	w.step(model.LaunchingPaused{At: w.now, Closure: &model.Cordon{Since: w.now}})
	wide, fits, other, bare := asks("ada", 2), asks("ada", 1), asks("bob", 2), asks("cyd", 0)
	w.step(model.LaunchingPaused{At: w.now})
	w.wantOn(fits, 2)
	w.wantOn(wide)
	w.wantOn(other)
	w.wantPhase(bare, model.Launching)
}
