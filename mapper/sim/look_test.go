package sim

import (
	"reflect"
	"testing"
	"time"

	"carma/internal/units"

	"pgregory.net/rapid"
)

// TestLookReportsEachChange: a report that does not differ from the last one, according to
// look, is equal to it in every field.
func TestLookReportsEachChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDevice(station(1)[0], origin)
		d.heat()
		d.look(origin)
		last := d.sample()
		for second := range 120 {
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				d.turn(origin.Add(time.Duration(second)*time.Second), rapid.Float64Range(0, 1).Draw(t, "smact"))
			}
			if len(d.uses) > 0 && rapid.IntRange(0, 9).Draw(t, "grows") == 0 {
				d.uses[0].device = d
				d.uses[0].alloc(origin.Add(time.Duration(second)*time.Second), units.MiB)
			}
			differs := d.look(origin.Add(time.Duration(second+1) * time.Second))
			if now := d.sample(); !differs && !reflect.DeepEqual(now, last) {
				t.Fatalf("second %d: the report %+v follows %+v, and look says that nothing differs", second, now, last)
			} else if differs {
				last = now
			}
		}
	})
}
