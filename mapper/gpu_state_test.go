package mapper

import (
	"slices"
	"testing"

	"carma/mapper/model"
)

// TestTurnedDownOnce checks that after a cycle without launches, the next cycle does not check
// any GPU again for a waiting task if nothing has changed.
func TestTurnedDownOnce(t *testing.T) {
	tried, again := 0, 0
	for seed := range uint64(4) {
		l := newLab(DefaultsOf("carma"), seed, 24, 60)
		l.fill(120)
		for range 300 {
			before := l.s.placer.cache.clock
			decisions := l.s.Step(l.next())
			l.note(decisions)
			launched := slices.ContainsFunc(decisions, func(d model.Decision) bool { _, ok := d.(model.Launch); return ok })
			if launched || l.s.placer.cache.clock != before+1 || l.s.placer.cache.forgotten >= before {
				continue // not a single cycle without a launch
			}
			for _, waiting := range l.s.TaskList() {
				if at := l.s.placer.tried(waiting).at; at == l.s.placer.cache.clock {
					tried++
					if slices.ContainsFunc(l.s.GPUList(), func(g *model.GPU) bool { return cacheOf(g).changedAt > at }) {
						again++
					}
				}
			}
		}
	}
	if tried < 1000 || again > 0 {
		t.Errorf("of %d tries that failed, %d are repeated though nothing has changed", tried, again)
	}
}
