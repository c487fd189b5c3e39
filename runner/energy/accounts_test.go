package energy

import (
	"math"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"carma/configs/servers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/simgpu"
	"carma/runner/gpu/simgpu/client"
	"carma/runner/gpu/simgpu/wire"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"
)

// at returns an instant this number of seconds after the beginning of a test.
func at(seconds float64) units.Instant { return units.Instant(1e18 + seconds*1e9) }

func newTestAccounts() *Accounts { return New(at(0), map[string]string{"a": "", "b": ""}) }

// shows returns a sample of GPU a.
func shows(joules, watts float64) []gpu.Sample {
	return []gpu.Sample{{UUID: "a", EnergyJ: joules, PowerW: watts}}
}

var one, two = gpu.AttemptKey{Task: 1, Attempt: 1}, gpu.AttemptKey{Task: 2, Attempt: 1}

// joules fails the test if an account differs from the wanted value by more than rounding.
func (b *Accounts) wants(t *testing.T, what string, key gpu.AttemptKey, want float64) {
	t.Helper()
	if got := b.Joules(key); math.Abs(got-want) > 1e-6 {
		t.Errorf("%s: task %d has %v J, want %v", what, key.Task, got, want)
	}
}

// TestAccounts checks that a GPU's idle draw is shared equally, and the rest by the SM activity
// in the mapper, or equally if there is none. The energy between a sample and a task's start or
// end is estimated from the power draw.
func TestAccounts(t *testing.T) {
	b := newTestAccounts()
	b.Sample(at(0), shows(1000, 60)) // no task runs: 60 W are the idle draw
	b.Sample(at(1), shows(1060, 60))
	b.Start(at(1.5), one, "ann", []string{"a"}, false) // 30 J belong to no task
	b.Sample(at(2), shows(1120, 300))
	b.wants(t, "half a second alone", one, 30)
	b.Start(at(2), two, "bob", []string{"a"}, false)
	b.Sample(at(3), shows(1420, 300))
	b.wants(t, "nothing known: equally", two, 150)
	b.setActivity(map[string]map[model.TaskID]float64{"a": {1: 0.6, 2: 0.2}})
	b.Sample(at(4), shows(1720, 300))
	b.wants(t, "30 W each, and three quarters of 240 W", one, 30+150+210)
	b.wants(t, "30 W each, and a quarter of 240 W", two, 150+90)
	if got := b.Stop(at(4.5), one); math.Abs(got-(390+105)) > 1e-6 {
		t.Errorf("it leaves with %v J", got)
	}
	b.Forget(one)
	b.Sample(at(5), shows(2020, 300))
	b.wants(t, "half a second with the other, half alone", two, 240+45+150)
	b.Stop(at(5), two)
	b.Sample(at(6), shows(2080, 60))
	if v := b.View(); v.Users["ann"] != 495 || v.Users["bob"] != 435 || v.TasksJ != 930 || v.IdleJ != 60+30+60 {
		t.Errorf("the sums are %+v", v)
	}
}

// TestCounter checks that no account loses energy by a counter that is reset, a counter that
// stops because the GPU is lost, or impossible readings.
func TestCounter(t *testing.T) {
	b := newTestAccounts()
	b.Start(at(0), one, "ann", []string{"a"}, false)
	b.Sample(at(0), shows(5000, 100))
	b.Sample(at(1), shows(5100, 100))
	b.Sample(at(2), shows(40, 100)) // from the power draw: 100 W for a second
	b.wants(t, "the counter began anew", one, 200)
	b.Sample(at(3), shows(140, 100))
	b.wants(t, "and goes on", one, 300)
	for i, odd := range []float64{math.NaN(), math.Inf(1), -5} {
		b.Sample(at(4+float64(i)), shows(140, odd))
	}
	b.Sample(at(7), []gpu.Sample{{UUID: "a", EnergyJ: 140, PowerW: 0, Fault: "it is lost"}, {UUID: "new", EnergyJ: 7}})
	b.Sample(at(8), shows(240, 100))
	b.wants(t, "it stood still", one, 400)
	if c := b.cards["a"]; c.least != 0 {
		t.Errorf("its idle draw is %v W, though it never was idle", c.least)
	}
}

// TestInstances checks that an idle MIG instance does not determine the idle draw while another
// instance of the card is busy.
func TestInstances(t *testing.T) {
	b := New(at(0), map[string]string{"MIG-1": "card", "MIG-2": "card"})
	b.Start(at(0), one, "ann", []string{"MIG-1"}, false)
	b.Sample(at(1), []gpu.Sample{{UUID: "MIG-1", PowerW: 150}, {UUID: "MIG-2", PowerW: 150}})
	if b.cards["MIG-2"].least != 0 {
		t.Error("the draw of another's task is taken for the idle draw")
	}
	b.Stop(at(2), one)
	b.Sample(at(3), []gpu.Sample{{UUID: "MIG-1", PowerW: 30}, {UUID: "MIG-2", PowerW: 30}})
	if b.cards["MIG-1"].least != 30 || b.cards["MIG-2"].least != 30 {
		t.Error("the idle draw is not noted")
	}
}

// TestSums checks that for any order of starts, ends and readings, the energy of the attempts
// and of idle GPUs together equals the counter, and that no account is negative.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newTestAccounts()
		now, counter, watts := 0.0, 500.0, 60.0
		b.Sample(at(0), shows(counter, watts))
		running, next := map[gpu.AttemptKey]bool{}, 1
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			dt := rapid.Float64Range(0, 3).Draw(t, "seconds")
			now += dt
			counter += rapid.Float64Range(0, 500).Draw(t, "draw") * dt
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				key := gpu.AttemptKey{Task: model.TaskID(next), Attempt: 1}
				running[key] = true
				next++
				b.Start(at(now), key, "u", []string{"a"}, false)
			case 1:
				for key := range running {
					b.Stop(at(now), key)
					delete(running, key)
					break
				}
			case 2:
				b.setActivity(map[string]map[model.TaskID]float64{"a": {1: rapid.Float64Range(0, 1).Draw(t, "activity"), 2: 0.5}})
			default:
				watts = rapid.Float64Range(0, 500).Draw(t, "watts")
				b.Sample(at(now), shows(counter, watts))
			}
		}
		b.Sample(at(now+1), shows(counter, watts))
		sum := b.idle
		for key, line := range b.open {
			if sum += line.joules; line.joules < 0 {
				t.Fatalf("%v has %v J", key, line.joules)
			}
		}
		if shown := counter - 500; math.Abs(sum-b.cards["a"].ahead-shown) > 1e-6*(1+shown) {
			t.Fatalf("%v J are shared out, of which %v are ahead of the counter; it has shown %v J", sum, b.cards["a"].ahead, shown)
		}
	})
}

// TestSimulated checks, for a simulated server, that the energy of two tasks equals the energy
// of their GPU, and the task with more activity has more.
func TestSimulated(t *testing.T) {
	station, err := servers.Find("dgx-station-a100")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "energy") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var seconds atomic.Int64
	server, err := simgpu.New(station, dir, func() time.Time { return at(float64(seconds.Load())).Time() }, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	b := New(at(0), nil)
	sample := func() gpu.Sample {
		all, err := server.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Sample(at(float64(seconds.Load())), all)
		return all[0]
	}
	idle := sample()
	busy := map[model.TaskID]float64{}
	for i, smact := range []float64{0.6, 0.2} {
		key := gpu.AttemptKey{Task: model.TaskID(i + 1), Attempt: 1}
		busy[key.Task] = smact
		c, err := client.Dial(t.Context(), client.Options{Dir: dir, Task: key.Task, Attempt: 1, GPUs: []string{"0"}, Loads: []wire.Load{{SMACT: smact}}, Window: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		b.Start(at(0), key, "ann", []string{idle.UUID}, false)
	}
	b.setActivity(map[string]map[model.TaskID]float64{idle.UUID: busy})
	var last gpu.Sample
	for range 20 {
		seconds.Add(5)
		last = sample()
	}
	used, first, second := last.EnergyJ-idle.EnergyJ, b.Joules(one), b.Joules(two)
	if math.Abs(first+second-used) > 1e-6*used || !(last.PowerW > idle.PowerW) {
		t.Errorf("two tasks have %v and %v of %v J; %v W, idle %v W", first, second, used, last.PowerW, idle.PowerW)
	}
	base := idle.PowerW * 100 / 2
	if ratio := (first - base) / (second - base); math.Abs(ratio-3) > 1e-6 {
		t.Errorf("above their part of the idle draw one has %v times as much as the other, want 3", ratio)
	}
}
