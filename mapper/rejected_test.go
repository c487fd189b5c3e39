package mapper

import (
	"reflect"
	"testing"
)

// TestTriesAreShared checks that a GPU skipped for a task because it has rejected an equal
// request would reject the task too, and that a state without a cache, which checks all GPUs,
// makes the same decisions.
func TestTriesAreShared(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	shared, kept := 0, 0
	for seed := range uint64(18) {
		c := newThrong(seed)
		for i := range 600 {
			ev := c.next()
			if c.plain.placer.DropCache(); i%100 == 99 {
				c.reload(t)
			}
			got, want := c.s.Step(ev), c.plain.Step(ev)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, event %d: %+v led to %v, without notes to %v", seed, i, ev, got, want)
			}
			if err := c.s.overlooked(); err != nil {
				t.Fatal(err)
			}
			c.note(got)
			for _, w := range c.s.TaskList() {
				if w.Waiting() {
					shared += len(c.s.placer.Skipped(w))
				}
			}
			if len(c.s.reserve.Head().GPUs) > 0 {
				kept++
			}
		}
	}
	if shared < 1000 || kept < 100 {
		t.Errorf("%d GPUs were not asked, and %d times some were reserved: the test looks at little", shared, kept)
	}
}
