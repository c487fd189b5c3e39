package energy

import (
	"math"
	"testing"

	"carma/runner/gpu"
)

// TestGap checks that the energy that a GPU has used while no daemon ran is shared among the
// tasks that ran on it all the time. If a task started or ended, or the counter was reset, no
// task is charged for this energy. Earlier sums do not change.
func TestGap(t *testing.T) {
	shows := func(joules, own float64) []gpu.Sample {
		return []gpu.Sample{{UUID: "a", EnergyJ: joules, CounterJ: own, PowerW: 100}}
	}
	for name, row := range map[string]struct {
		own      float64 // the card's counter after the gap
		first    bool    // the first task ran all the time
		another  bool    // another task has started
		unnoted  bool    // it started before the gap, and after the accounts were last stored
		restarts int     // number of daemons that end before they read anything
		want     float64 // joules of the first task
	}{
		"both ran on":                 {own: 7200, first: true, want: 50 + 1000},
		"one ended":                   {own: 7200, want: 50},
		"somebody came, not noted":    {own: 7200, first: true, another: true, unnoted: true, want: 50},
		"somebody came":               {own: 7200, first: true, another: true, want: 50},
		"the counter began anew":      {own: 900, first: true, want: 50},
		"nonsense":                    {own: 1e12, first: true, want: 50},
		"the card has no counter":     {first: true, want: 50},
		"a daemon died at its start":  {own: 7200, first: true, restarts: 2, want: 50 + 1000},
		"it died, and then one ended": {own: 7200, restarts: 1, want: 50},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestAccounts()
			b.Sample(at(0), shows(10, 5100))
			b.Start(at(0), one, "ann", []string{"a"}, false)
			b.Start(at(0), two, "bob", []string{"a"}, false)
			b.Sample(at(1), shows(110, 5200))
			note := b.save(at(1))
			for range 1 + row.restarts {
				b = newTestAccounts()
				if err := b.Load(note, func(gpu.AttemptKey) bool { return true }); err != nil {
					t.Fatal(err)
				}
				b.Sample(at(50), shows(0, 5000))
				b.markUnsaved()
				note = b.save(at(51))
			}
			if row.first {
				b.Start(at(100), one, "ann", []string{"a"}, true)
			} else {
				b.wants(t, "before its end is found", one, 50)
				b.Stop(at(100), one)
			}
			b.Sample(at(100), shows(0, row.own))
			b.Start(at(101), two, "bob", []string{"a"}, true)
			if row.another {
				b.Start(at(101), gpu.AttemptKey{Task: 3, Attempt: 1}, "cid", []string{"a"}, row.unnoted)
			}
			b.Sample(at(101), shows(0, row.own))
			b.wants(t, "after the gap", one, row.want)
			v := b.View()
			if math.Abs(v.Users["ann"]-row.want) > 0.01 || !v.Since.Equal(at(0).Time()) {
				t.Errorf("the sums are %+v", v)
			}
			before := b.Joules(two)
			b.Sample(at(102), shows(300, row.own+300))
			if got := b.Joules(two) - before; !(got > 0) {
				t.Errorf("the other has used %v J since", got)
			}
		})
	}
}

// TestNote checks that save writes nothing without changes, that Load refuses invalid data, and
// that it leaves out attempts that have ended.
func TestNote(t *testing.T) {
	b := newTestAccounts()
	b.Sample(at(0), shows(0, 60))
	b.Sample(at(1), shows(60, 60))
	if b.save(at(1)) != nil {
		t.Error("an idle server writes")
	}
	b.Start(at(1), one, "ann", []string{"a"}, false)
	b.Sample(at(2), shows(160, 100))
	note := b.save(at(2))
	if note == nil || b.save(at(2)) != nil {
		t.Errorf("the note is %s", note)
	}
	c := newTestAccounts()
	if err := c.Load(note, func(gpu.AttemptKey) bool { return false }); err != nil || c.Joules(one) != 0 || c.View().Users["ann"] != 100 || c.cards["a"].least != 60 {
		t.Errorf("%v: %+v", err, c.View())
	}
	if err := c.Load([]byte("{"), nil); err == nil {
		t.Error("nonsense is read")
	}
}
