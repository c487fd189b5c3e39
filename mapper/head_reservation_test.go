package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// stream keeps three small tasks on every GPU: when one ends, it submits another one.
func stream(w *world, n int, until func() bool) (steps int) {
	w.t.Helper()
	for range 3 * n {
		w.submit(10*units.GiB, nil)
	}
	for ; steps < 5000 && !until(); steps++ {
		w.wait(time.Minute)
		w.submit(10*units.GiB, nil)
		var oldest model.TaskID
		for _, task := range w.s.Tasks() {
			if task.Phase.Placed() && (oldest == 0 || task.ID < oldest) {
				oldest = task.ID
			}
		}
		w.exit(oldest, model.ExitOK)
	}
	return steps
}

// TestBoundedWait checks that an endless stream of small tasks cannot starve a task that
// needs whole GPUs.
func TestBoundedWait(t *testing.T) {
	for _, row := range []struct {
		name string
		mem  units.Bytes
		edit func(*model.Request)
	}{
		{"whole GPU", units.GiB, whole},
		{"all of the memory", 40 * units.GiB, nil},
		{"both GPUs", 25 * units.GiB, gpus(2)},
		{"both GPUs whole", units.GiB, func(r *model.Request) { r.GPUs, r.Exclusive = 2, true }},
	} {
		for _, policy := range []string{"round-robin", "magm", "lug"} {
			t.Run(row.name+"/"+policy, func(t *testing.T) {
				opt := plain()
				opt.Policy, opt.Ageing = policy, 30*time.Minute
				w := newWorld(t, opt, 2)
				stream(w, 2, func() bool { return w.last >= 8 })
				big := w.submit(row.mem, row.edit)
				from := w.now
				overtaken := len(w.launches)
				stream(w, 0, func() bool { return w.on(big) != nil })
				if waited := w.now.Sub(from); w.on(big) == nil || waited < 30*time.Minute || waited > 45*time.Minute {
					t.Errorf("it waited %s and was overtaken %d times", waited, len(w.launches)-overtaken)
				}
			})
		}
	}
}

// TestHold checks the edge cases of head reservations.
func TestHold(t *testing.T) {
	opt := plain()
	opt.Ageing = 10 * time.Minute
	t.Run("not before the ageing is over", func(t *testing.T) {
		w := newWorld(t, opt, 1)
		w.submit(10*units.GiB, nil)
		big := w.submit(units.GiB, whole)
		w.wait(10*time.Minute - 1)
		w.wantOn(w.submit(units.GiB, nil), 0)
		w.wait(1)
		late := w.submit(units.GiB, nil)
		w.wantOn(late)
		if w.s.ReservedFor("GPU-0") != big {
			t.Error("the GPU is not kept free")
		}
		w.exit(1, model.ExitOK)
		w.exit(3, model.ExitOK)
		w.wantOn(big, 0)
		w.wantOn(late)
		w.exit(big, model.ExitOK)
		w.wantOn(late, 0)
	})
	t.Run("does not hurt what comes before", func(t *testing.T) {
		w := newWorld(t, opt, 1)
		w.submit(10*units.GiB, nil)
		w.submit(10*units.GiB, nil)
		big := w.submit(units.GiB, whole)
		w.wait(10 * time.Minute)
		w.look()
		w.wantOn(w.submit(units.GiB, high), 0)
		w.exit(2, model.ExitGPUOOM) // it enters the recovery queue, before all other tasks
		w.wantOn(2, 0)
		w.wantOn(w.submit(units.GiB, nil))
		w.wantOn(big)
	})
	t.Run("only on as many GPUs as it needs", func(t *testing.T) {
		w := newWorld(t, opt, 2)
		w.submit(10*units.GiB, nil)
		w.submit(20*units.GiB, nil)
		big := w.submit(units.GiB, whole)
		w.wait(10 * time.Minute)
		w.wantOn(w.submit(units.GiB, nil), 1)
		w.exit(2, model.ExitOK)
		w.exit(4, model.ExitOK)
		w.wantOn(big, 1) // the other GPU was faster
		w.wantOn(w.submit(units.GiB, nil), 0)
	})
	t.Run("moves when its GPU fails", func(t *testing.T) {
		w := newWorld(t, opt, 2)
		w.submit(10*units.GiB, nil)
		w.submit(20*units.GiB, nil)
		big := w.submit(units.GiB, whole)
		w.wait(10 * time.Minute)
		w.look()
		if w.s.ReservedFor("GPU-0") != big {
			t.Fatal("GPU 0 is not kept free")
		}
		w.sample(model.GPUSample{ID: "GPU-0", Fault: "ECC"})
		if w.s.ReservedFor("GPU-0") != 0 || w.s.ReservedFor("GPU-1") != big {
			t.Error("what is kept free has not moved to GPU 1")
		}
	})
	t.Run("ends when its task leaves", func(t *testing.T) {
		w := newWorld(t, opt, 1)
		w.submit(10*units.GiB, nil)
		big := w.submit(units.GiB, whole)
		w.wait(10 * time.Minute)
		small := w.submit(units.GiB, nil)
		w.wantOn(small)
		w.cancel(big)
		w.wantOn(small, 0)
	})
	t.Run("ends when its task cannot fit any more", func(t *testing.T) {
		w := newWorld(t, opt, 2)
		w.submit(10*units.GiB, nil)
		w.submit(10*units.GiB, nil)
		w.submit(units.GiB, func(r *model.Request) { r.GPUs, r.Exclusive = 2, true })
		w.wait(10 * time.Minute)
		small := w.submit(units.GiB, nil)
		w.wantOn(small)
		w.sample(model.GPUSample{ID: "GPU-1", Fault: "ECC"})
		w.wantOn(small, 0)
	})
	t.Run("age is kept when others come before", func(t *testing.T) {
		w := newWorld(t, opt, 1)
		w.submit(10*units.GiB, nil)
		big := w.submit(units.GiB, whole)
		w.wait(9 * time.Minute)
		first := w.submit(40*units.GiB, high) // the first task that does not fit, for some time
		w.wait(30 * time.Second)
		w.cancel(first)
		w.wait(30 * time.Second)
		w.wantOn(w.submit(units.GiB, nil))
		w.exit(1, model.ExitOK)
		w.wantOn(big, 0)
	})
	t.Run("age is kept when the machine is looked at again", func(t *testing.T) {
		w := newWorld(t, opt, 1)
		w.submit(10*units.GiB, nil)
		w.submit(units.GiB, whole)
		for range 10 {
			w.wait(time.Minute)
			w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{w.gpu(0).GPUInfo}})
		}
		w.wantOn(w.submit(units.GiB, nil))
	})
}
