package mapper

import (
	"testing"

	"carma/mapper/model"
)

// TestDrain checks that drain lies between its bounds, which are close together, and that the
// backlog follows the queue while tasks are submitted, end and are measured.
func TestDrain(t *testing.T) {
	critical := 0
	for seed := range uint64(4) {
		l := newLab(DefaultsOf("carma"), seed, 24, 60)
		for range 60 {
			l.fill(30)
			for range 20 {
				l.note(l.s.Step(l.next()))
			}
			if err := l.s.queue.AuditBacklog(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			b := l.s.queue.Backlog()
			if err := l.s.placer.AuditDrain(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			lane := 1
			exactly := l.drain()
			var want []*model.Task
			for _, w := range b.Lane(lane) {
				if run, _ := l.s.predictor.RunTime(w); run.Seconds() >= exactly {
					want = append(want, w)
				}
			}
			if got := l.s.placer.Critical(lane); len(got) != len(want) {
				t.Fatalf("seed %d: %d critical tasks, want %d", seed, len(got), len(want))
			}
			critical += len(want)
		}
	}
	if critical == 0 {
		t.Error("no task was ever critical: the test does not look at that")
	}
}

// drain returns the time in which the GPUs could do the SM work of all tasks.
func (l *lab) drain() (seconds float64) {
	for _, t := range l.s.queue.WaitingList() {
		seconds = l.s.predictor.SMWork(t, seconds)
	}
	for _, g := range l.s.GPUList() {
		for _, p := range l.s.placer.Forecasts(g) {
			seconds += p.Left * p.SM
		}
	}
	return seconds / float64(len(l.s.GPUList()))
}
