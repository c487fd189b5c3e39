package mapper

import (
	"slices"
	"testing"

	"carma/mapper/model"
)

// TestTurnedDownOnce checks that a scheduling cycle in which nothing has changed since the
// last one asks no GPU again.
func TestTurnedDownOnce(t *testing.T) {
	asked, cycles := 0, 0
	for seed := range uint64(4) {
		l := newLab(DefaultsOf("carma"), seed, 24, 60)
		l.fill(120)
		for range 300 {
			before := l.s.placer.Asked()
			decisions := l.s.Step(l.next())
			l.note(decisions)
			asked += l.s.placer.Asked() - before
			if launches(decisions) || l.s.QueueLen() == 0 {
				continue // room may be left for others
			}
			for range 2 { // the event need not have led to a cycle
				before = l.s.placer.Asked()
				l.s.MarkDirty()
				decisions = append(decisions, l.s.Step(model.TimerFired{At: l.s.Now()})...)
			}
			if launches(decisions) {
				continue
			}
			if cycles++; l.s.placer.Asked() > before {
				t.Fatalf("seed %d: nothing has changed, and GPUs are asked %d times", seed, l.s.placer.Asked()-before)
			}
		}
	}
	if asked < 1000 || cycles < 100 {
		t.Errorf("GPUs were asked %d times, in %d cycles nothing had changed: the test looks at little", asked, cycles)
	}
}

func launches(decisions []model.Decision) bool {
	return slices.ContainsFunc(decisions, func(d model.Decision) bool { _, ok := d.(model.Launch); return ok })
}
