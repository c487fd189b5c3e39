package mapper

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/mapper/model"

	"pgregory.net/rapid"
)

// TestNotesChangeNothing checks that a state with a cache and a state whose cache is dropped
// before each event, which scores each waiting task on each GPU, make the same decisions.
func TestNotesChangeNothing(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		opt := DefaultsOf("carma")
		opt.Ageing = rapid.SampledFrom([]time.Duration{time.Minute, 8 * time.Hour}).Draw(t, "ageing")
		opt.LookAhead = rapid.SampledFrom([]int{4, 64}).Draw(t, "look-ahead")
		l := newLab(opt, rapid.Uint64().Draw(t, "seed"), 12, 20)
		plain := l.s.Clone()
		queued := rapid.IntRange(5, 250).Draw(t, "queued")
		for range rapid.IntRange(1, 600).Draw(t, "events") {
			events := []model.Event{l.next()}
			if l.s.QueueLen() < queued {
				events = append(events, l.submit()...)
			}
			for _, ev := range events {
				plain.placer.DropCache()
				got, want := l.s.Step(ev), plain.Step(ev)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%T led to %v, without notes to %v", ev, got, want)
				}
				if err := l.s.looksWrong(); err != nil {
					t.Fatalf("after %T: %v", ev, err)
				}
				l.note(got)
			}
			if len(l.s.reserve.Head().GPUs) > 0 {
				kept++
			}
			if at := l.coming; len(at) == 0 {
				l.now = l.now.Add(time.Duration(l.rng.IntN(20)) * time.Second)
			}
		}
		if got, want := inQueue(l.s), inQueue(plain); !slices.Equal(got, want) {
			t.Fatalf("order %v, without notes %v", got, want)
		}
	})
	if kept == 0 {
		t.Error("no GPU was ever kept free: the test does not look at that")
	}
}
