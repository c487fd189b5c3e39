package predict

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"carma/internal/units"

	"pgregory.net/rapid"
)

// TestOldestKind checks that the dropped kind is the same as in a search of the whole
// history, whichever kinds were seen again meanwhile.
func TestOldestKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history
		var a ages
		now := units.Instant(1)
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += units.Instant(rapid.IntRange(0, 1).Draw(t, "passes"))
			if len(h) < 3 || rapid.Bool().Draw(t, "new") {
				e := &KindHistory{Kind: fmt.Sprintf("kind%02d", i)}
				h = append(h, e)
				a.add(e)
				e.Last = now
			} else {
				h[rapid.IntRange(0, len(h)-1).Draw(t, "seen")].Last = now
			}
			if len(h) > 8 {
				want := slices.MinFunc(h, func(a, b *KindHistory) int {
					return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Kind, b.Kind))
				})
				got := a.oldest(h)
				if got != want {
					t.Fatalf("%s, last seen at %d, goes before %s, last seen at %d", got.Kind, got.Last, want.Kind, want.Last)
				}
				h = slices.DeleteFunc(h, func(e *KindHistory) bool { return e == got })
			}
		}
	})
}
