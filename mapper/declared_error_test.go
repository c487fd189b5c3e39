package mapper

import (
	"testing"
	"time"

	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// TestToldIsDoubted checks that the doubt about declared activities grows with their past
// errors in samples of tasks that were alone.
func TestToldIsDoubted(t *testing.T) {
	for _, row := range []struct {
		name     string
		is       interference.Load
		from, to float64
	}{
		{"as told", mid, 0, 0},
		{"more", interference.Load{SMACT: 0.75, DRAMA: 0.3}, 0.05, 0.12},
		{"less", interference.Load{SMACT: 0.45, DRAMA: 0.2}, 0.05, 0.12},
		{"it waits for something", interference.Load{SMACT: 0.03}, 0.05, predict.DeclaredMost},
		{"it reads data", nothing, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, predicting(), 1)
			for range 8 {
				a := w.does(mid, "")
				w.wantOn(a, 0)
				w.seen(row.is, 0)
				w.wait(model.SettleTime + time.Minute)
				w.look()
				w.exit(a, model.ExitOK)
			}
			next := w.task(w.does(mid, ""))
			if got := w.s.predictor.Doubt(next, 0); got < row.from-1e-9 || got > row.to+1e-9 {
				t.Errorf("what is told of the next is in doubt by %.2f, want %.2f to %.2f", got, row.from, row.to)
			}
			if got := w.s.predictor.Doubt(w.task(w.expecting(model.Expected{}, kind("b", ""))), 0); got != 0 {
				t.Errorf("nothing was told of another, and that is in doubt by %.2f", got)
			}
			parts := w.s.predictor.Forecasts(nil, w.s.GPU("GPU-0"), w.now)
			if worse := parts[0].WorstDemand != parts[0].Demand; worse != (row.from > 0) {
				t.Errorf("its likely worst is worse than what is expected: %v", worse)
			}
		})
	}
}
