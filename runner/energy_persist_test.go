package runner

import (
	"errors"
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/journal"
)

// TestEnergyGap: energy that a GPU has used while no daemon ran is shared among the tasks
// that ran on it all the time. If a task came or ended, or the counter was reset, it
// belongs to nobody; earlier sums stay.
func TestEnergyGap(t *testing.T) {
	shows := func(joules, own float64) []gpu.Sample {
		return []gpu.Sample{{UUID: "a", EnergyJ: joules, CounterJ: own, PowerW: 100}}
	}
	for name, row := range map[string]struct {
		own      float64 // the card's counter after the gap
		first    bool    // the first task ran all the time
		another  bool    // another task has come
		unnoted  bool    // it came before the gap, and after the last note
		restarts int     // daemons that end before they read anything
		want     float64 // of the first
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
			b := newTestBook()
			b.sample(at(0), shows(10, 5100))
			b.join(at(0), one, "ann", []string{"a"}, false)
			b.join(at(0), two, "bob", []string{"a"}, false)
			b.sample(at(1), shows(110, 5200))
			note := b.note(at(1))
			for range 1 + row.restarts {
				b = newTestBook()
				if err := b.recall(note, func(attemptKey) bool { return true }); err != nil {
					t.Fatal(err)
				}
				b.sample(at(50), shows(0, 5000))
				b.redo()
				note = b.note(at(51))
			}
			if row.first {
				b.join(at(100), one, "ann", []string{"a"}, true)
			} else {
				b.joules(t, "before its end is found", one, 50)
				b.leave(at(100), one)
			}
			b.sample(at(100), shows(0, row.own))
			b.join(at(101), two, "bob", []string{"a"}, true)
			if row.another {
				b.join(at(101), attemptKey{3, 1}, "cid", []string{"a"}, row.unnoted)
			}
			b.sample(at(101), shows(0, row.own))
			b.joules(t, "after the gap", one, row.want)
			v := b.view()
			if math.Abs(v.Users["ann"]-row.want) > 0.01 || !v.Since.Equal(at(0).Time()) {
				t.Errorf("the sums are %+v", v)
			}
			before := b.of(two)
			b.sample(at(102), shows(300, row.own+300))
			if got := b.of(two) - before; !(got > 0) {
				t.Errorf("the other has used %v J since", got)
			}
		})
	}
}

// TestEnergyNote: without news nothing is written; nonsense is refused, and attempts
// that are over are left out.
func TestEnergyNote(t *testing.T) {
	b := newTestBook()
	b.sample(at(0), shows(0, 60))
	b.sample(at(1), shows(60, 60))
	if b.note(at(1)) != nil {
		t.Error("an idle server writes")
	}
	b.join(at(1), one, "ann", []string{"a"}, false)
	b.sample(at(2), shows(160, 100))
	note := b.note(at(2))
	if note == nil || b.note(at(2)) != nil {
		t.Errorf("the note is %s", note)
	}
	c := newTestBook()
	if err := c.recall(note, func(attemptKey) bool { return false }); err != nil || c.of(one) != 0 || c.view().Users["ann"] != 100 || c.cards["a"].least != 60 {
		t.Errorf("%v: %+v", err, c.view())
	}
	if err := c.recall([]byte("{"), nil); err == nil {
		t.Error("nonsense is read")
	}
}

// TestEnergyIsKept: the energy of an attempt is there while it runs, after a restart, after
// its end, and in listings; a user's energy stays when the task is removed.
func TestEnergyIsKept(t *testing.T) {
	g := newRig(t)
	g.script("train", untilStopped)
	g.cards.set(gpu.Sample{UUID: "GPU-a", PowerW: 50, EnergyJ: 100, CounterJ: 9000})
	g.cards.set(gpu.Sample{UUID: "GPU-b", PowerW: 50, EnergyJ: 100, CounterJ: 9000})
	ref := g.run(api.Submit{Image: "train", Mem: int64(8 * units.GiB)})
	task := g.running(ref)
	uuid := task.Attempts[0].GPUs[0].UUID
	g.eventually("the first sample", func() bool {
		gpus, err := g.api.GPUs(g.ctx())
		return err == nil && gpus[0].EnergyJ > 0
	})
	has := func(what string, least float64) {
		t.Helper()
		g.eventually(what, func() bool {
			task, err := g.api.Task(g.ctx(), ref)
			return err == nil && task.EnergyJ >= least && task.EnergyJ < least+500 && task.Attempts[0].EnergyJ == task.EnergyJ
		})
	}
	g.cards.set(gpu.Sample{UUID: uuid, PowerW: 50, EnergyJ: 3100, CounterJ: 12_000})
	has("the energy of a running task", 2500) // it may have been somebody's for a moment before
	before, _ := g.api.Task(g.ctx(), ref)
	g.stop()
	g.cards.set(gpu.Sample{UUID: uuid, PowerW: 50, EnergyJ: 5, CounterJ: 16_000})
	g.start()
	has("with that of the time without a daemon", before.EnergyJ+4000-400)
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	end := g.finished(ref)
	list, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true})
	if err != nil || len(list) != 1 || list[0].EnergyJ != end.EnergyJ || end.EnergyJ < before.EnergyJ+3500 {
		t.Errorf("it ends with %v J, after %v; listed as %+v, %v", end.EnergyJ, before.EnergyJ, list, err)
	}
	g.restart()
	if again, err := g.api.Task(g.ctx(), ref); err != nil || again.EnergyJ != end.EnergyJ {
		t.Errorf("after a restart it has %v J, want %v; %v", again.EnergyJ, end.EnergyJ, err)
	}
	if err := g.api.Remove(g.ctx(), ref); err != nil {
		t.Fatal(err)
	}
	info, err := g.api.Info(g.ctx())
	if err != nil || info.Energy == nil || math.Abs(info.Energy.Users[end.User]-end.EnergyJ) > 1 || time.Since(info.Energy.Since) > time.Hour {
		t.Errorf("the sums are %+v, %v; want %v J of %s", info.Energy, err, end.EnergyJ, end.User)
	}
}

// TestEnergyIsNoted: the energy of a running task is in the journal within two
// minutes, so that a daemon that is killed loses no more.
func TestEnergyIsNoted(t *testing.T) {
	inVirtualTime(t, func(v *virtual) {
		for _, d := range v.GPUs.(*cards).devices {
			v.GPUs.(*cards).set(gpu.Sample{UUID: d.UUID, PowerW: 100, EnergyJ: 100})
		}
		v.submit("long")
		time.Sleep(90 * time.Second)
		for _, d := range v.GPUs.(*cards).devices {
			v.GPUs.(*cards).set(gpu.Sample{UUID: d.UUID, PowerW: 100, EnergyJ: 50_100})
		}
		time.Sleep(2 * time.Minute)
		b := newEnergyBook(0, nil)
		body, err := v.Journal.Meta(energyKey)
		if err == nil {
			err = b.recall(body, func(attemptKey) bool { return true })
		}
		if got := b.of(one); err != nil || got < 45_000 || got > 55_000 {
			t.Errorf("%v J of 50,000 are noted, %v", got, err)
		}
	})
}

// TestEnergyIsWorthNothing: a note that cannot be read keeps nobody from working.
func TestEnergyIsWorthNothing(t *testing.T) {
	g := newRig(t)
	g.script("ok", printing(0))
	g.stop()
	j, err := journal.Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.SetMeta(energyKey, []byte("nonsense")), j.Close()); err != nil {
		t.Fatal(err)
	}
	g.start()
	if got := g.finished(g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})); got.Phase != "succeeded" {
		t.Errorf("it has %s", got.Phase)
	}
}
