package mapper

import (
	"encoding/json"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// follows checks that a program that would make other decisions applies the recorded ones. The
// other program is simulated by other options: another policy, order, look-ahead, recovery and
// watchdog.
func (m *machine) follows(t *rapid.T) {
	other := rapid.Bool().Draw(t, "a program with other rules")
	from := rapid.IntRange(0, len(m.past)).Draw(t, "the last snapshot")
	rules := anyOptions(t)
	s := New(m.first)
	for _, ev := range m.past[:from] {
		s.Step(ev)
	}
	s = reload(t, s)
	if other {
		s.configure(model.Configured{Options: under(rules, s.Options()), Format: model.DecisionFormat})
	}
	for i, ev := range m.past[from:] {
		if c, ok := ev.(model.Configured); ok && other && Validate(c.Options) == nil {
			c.Options = under(rules, c.Options)
			ev = c
		}
		s.Apply(ev, m.led[from+i])
		if err := s.sound(); err != nil {
			t.Fatalf("after event %d %#v, followed with %+v: %v", from+i, ev, m.led[from+i], err)
		}
	}
	if got, want := settled(t, s), settled(t, m.s); got != want {
		t.Fatalf("the history has led to\n%s\nand followed by a program with the options %+v to\n%s", want, rules, got)
	}
	for _, d := range s.Step(model.TimerFired{At: m.now}) { // it continues from there
		if l, ok := d.(model.Launch); ok {
			if err := s.AuditLaunch(l); err != nil && s.Options().Booking != model.BookSamples {
				t.Fatal(err)
			}
		}
	}
	if err := s.sound(); err != nil {
		t.Fatal(err)
	}
}

// under returns the rules of one program with the machine's options from the journal.
func under(rules, of model.Options) model.Options {
	rules.Booking, rules.Headroom = of.Booking, of.Headroom
	return rules
}

// settled returns the results that a daemon has carried out or reported: the phase, GPUs,
// grants and reason of each task.
func settled(t *rapid.T, s *State) string {
	type task struct {
		ID                model.TaskID
		Phase             model.Phase
		Need              units.Bytes
		Alone             bool
		Attempts          []model.Attempt
		Stop              model.Reason
		Timed, Slot, Over bool
		Moving            bool
	}
	var all []task
	for _, of := range s.Tasks() {
		attempts := slices.Clone(of.Attempts)
		for i := range attempts {
			attempts[i].NotAtFault = false
		}
		one := task{of.ID, of.Phase, 0, false, attempts, of.StopReason, of.TimedOut, of.SlotUsed, of.Overuse, of.Moving}
		if of.Phase == model.Recovering {
			one.Need, one.Alone = of.NextGrant, of.NextExclusive
		}
		all = append(all, one)
	}
	type place struct {
		Task  model.TaskID
		Grant units.Bytes
		Alone bool
	}
	var books [][]place
	for _, g := range s.GPUs() {
		var page []place
		for _, r := range g.Residents {
			page = append(page, place{r.Task, r.Grant, r.Exclusive})
		}
		books = append(books, page)
	}
	b, err := json.Marshal([]any{all, books, s.LastID()})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// journaled returns decisions in the form in which a journal returns them.
func journaled(t *rapid.T, decisions []model.Decision) []model.Decision {
	var all []model.Decision
	for _, d := range decisions {
		kind, body, err := model.EncodeDecision(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := model.DecodeDecision(kind, body)
		if err != nil || !model.SameDecision(d, back) {
			t.Fatalf("%#v came back as %#v, %v", d, back, err)
		}
		all = append(all, back)
	}
	return all
}
