package sim

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
)

// TestWrongMemory checks that, with memory in the truth, tasks of a name need more or
// less than estimated, at most the smallest card, and tasks of one name the same.
func TestWrongMemory(t *testing.T) {
	least := 39 * units.GiB
	truth := Truth{Seed: 3, Memory: 0.5}
	more, less := 0, 0
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		task := training(0, time.Hour, 30*units.GiB, small)
		task.Name = name
		of := func(tr Truth, i int) (sum units.Bytes) {
			for _, a := range tr.plan(i, &task, least) {
				sum += a.Bytes
			}
			return sum
		}
		is := of(truth, 1)
		switch {
		case is > least || is != of(truth, 7):
			t.Errorf("%s needs %s, another of its name %s, of %s", name, is, of(truth, 7), least)
		case is > task.Memory[0]:
			more++
		case is < task.Memory[0]:
			less++
		}
		if !slices.Equal(Truth{Seed: 3}.plan(1, &task, least), Truth{}.plan(1, &task, least)) {
			t.Errorf("%s: the model's own memory depends on the seed", name)
		}
	}
	if more < 2 || less < 2 {
		t.Errorf("%d need more and %d less", more, less)
	}
}
