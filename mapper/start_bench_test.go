package mapper

import (
	"fmt"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// BenchmarkExpectedStart measures the first and the last of many waiting tasks, and the
// copy that a daemon's loop makes for it.
func BenchmarkExpectedStart(b *testing.B) {
	for _, n := range []int{100, 5000} {
		opt := plain()
		opt.Policy = "carma"
		w := newWorld(b, opt, 64)
		for i := range 64 + n {
			id := w.submitOnly(func(r *model.Request) { r.Kind = fmt.Sprint(i % 500) })
			w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: 30 * units.GiB}, Expected: model.Expected{RunTime: time.Duration(i%90+10) * time.Minute, Loads: []interference.Load{{SMACT: 0.8, DRAMA: 0.4}}}})
			if w.on(id) != nil {
				w.started(id)
			}
		}
		for name, id := range map[string]model.TaskID{"first": 65, "last": model.TaskID(64 + n)} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				for b.Loop() {
					w.s.ExpectedStart(id)
				}
			})
		}
		b.Run(fmt.Sprint("copy/", n), func(b *testing.B) {
			for b.Loop() {
				w.s.Clone()
			}
		})
	}
}
