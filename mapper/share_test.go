package mapper

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestShareOfEachGPU checks that a task that takes a share of a GPU by design is granted that
// share of its GPU, for any size of the GPU, and is placed on a GPU with enough room.
func TestShareOfEachGPU(t *testing.T) {
	half := model.Estimate{Memory: 20 * units.GiB, Point: 20 * units.GiB, Share: model.WholeGPU / 2}
	for name, row := range map[string]struct {
		beside, small units.Bytes // allocated on the large and on the small GPU before
		want          int         // the GPU it goes to
		grant         units.Bytes
	}{
		"the large one is free":       {0, 0, 1, 40 * units.GiB},
		"room for half of the small":  {45 * units.GiB, 0, 0, 20 * units.GiB},
		"half of the large fits next": {40 * units.GiB, 21 * units.GiB, 1, 40 * units.GiB},
	} {
		opt := plain()
		opt.Policy = "magm"
		w := newWorld(t, opt, 0)
		w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{{ID: "GPU-0", Index: 0, Capacity: 40 * units.GiB}, {ID: "GPU-1", Index: 1, Capacity: 80 * units.GiB}}})
		if row.beside > 0 {
			id := w.submit(row.beside, nil)
			w.wantOn(id, 1)
			w.started(id)
		}
		if row.small > 0 {
			small := w.submit(row.small, nil)
			w.wantOn(small, 0)
			w.started(small)
		}
		id := w.submitOnly(nil)
		w.step(model.Estimated{At: w.now, Task: id, Estimate: half})
		w.wantOn(id, row.want)
		if a := w.task(id).Current(); a == nil || a.Grants[0].Memory != row.grant {
			t.Errorf("%s: granted %+v, want %s", name, a, row.grant)
		}
		if err := w.s.sound(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// If no GPU has room, it waits, and starts on the first GPU that has.
	opt := plain()
	w := newWorld(t, opt, 0)
	w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{{ID: "GPU-0", Index: 0, Capacity: 40 * units.GiB}, {ID: "GPU-1", Index: 1, Capacity: 80 * units.GiB}}})
	large := w.submit(50*units.GiB, nil)
	small := w.submit(21*units.GiB, nil)
	w.wantOn(small, 0)
	w.started(small)
	w.started(large)
	id := w.submitOnly(nil)
	w.step(model.Estimated{At: w.now, Task: id, Estimate: half})
	w.wantPhase(id, model.Queued)
	w.exit(small, model.ExitOK)
	w.wantOn(id, 0)
}
