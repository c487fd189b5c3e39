package runner

import (
	"errors"
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/energy"
	"carma/runner/gpu"
	"carma/runner/journal"
)

// TestEnergyIsKept checks that the energy of an attempt is shown while it runs, after a
// restart, after its end, and in listings; a user's energy stays when the task is removed.
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
	has("the energy of a running task", 2500) // the energy may have been attributed to a task for a moment before
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
		b := energy.New(0, nil)
		body, err := v.Journal.Meta(energy.Key)
		if err == nil {
			err = b.Load(body, func(gpu.AttemptKey) bool { return true })
		}
		if got := b.Joules(gpu.AttemptKey{Task: 1, Attempt: 1}); err != nil || got < 45_000 || got > 55_000 {
			t.Errorf("%v J of 50,000 are noted, %v", got, err)
		}
	})
}

// TestEnergyIsWorthNothing checks that the daemon works although the stored energy accounts
// cannot be read.
func TestEnergyIsWorthNothing(t *testing.T) {
	g := newRig(t)
	g.script("ok", printing(0))
	g.stop()
	j, err := journal.Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.SetMeta(energy.Key, []byte("nonsense")), j.Close()); err != nil {
		t.Fatal(err)
	}
	g.start()
	if got := g.finished(g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})); got.Phase != "succeeded" {
		t.Errorf("it has %s", got.Phase)
	}
}
