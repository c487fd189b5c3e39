package simgpu

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"

	"pgregory.net/rapid"

	"carma/configs/servers"
	"carma/mapper/sim"
)

func station(t testing.TB) servers.Server {
	s, err := servers.Find("dgx-station-a100")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newProcess(l *ledger, load sim.Load, devices ...int) *process {
	c := &process{}
	c.paced = func(float64, float64) {}
	for _, d := range devices {
		c.uses = append(c.uses, &use{process: c, device: l.devices[d], load: load})
	}
	return c
}

// TestLedgerProperties drives the ledger with random actions of clients. As long as nobody
// declares memory at hello, no device ever holds more than it has.
func TestLedgerProperties(t *testing.T) {
	server := station(t)
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(server, epoch)
		now := epoch
		energy := 0.0
		share := rapid.Float64Range(0, 1)
		anyProcess := func(t *rapid.T) *process {
			if len(l.processes) == 0 {
				t.Skip("nobody is there")
			}
			return rapid.SampledFrom(l.processes).Draw(t, "client")
		}
		// Drawn from very different sizes, because rapid prefers small numbers, which would never
		// fill a device.
		amount := rapid.SampledFrom([]units.Bytes{0, 1, units.MiB, 9 * units.GiB, 20 * units.GiB, 39 * units.GiB, 40*units.GiB + 1})
		load := func(t *rapid.T) sim.Load {
			return sim.Load{SMACT: share.Draw(t, "smact"), SMOCC: share.Draw(t, "smocc"), DRAMA: share.Draw(t, "drama")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				devices := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 4, rapid.ID).Draw(t, "devices")
				l.join(newProcess(l, load(t), devices...))
			},
			"leave": func(t *rapid.T) { l.leave(anyProcess(t)) },
			"alloc": func(t *rapid.T) {
				u := rapid.SampledFrom(anyProcess(t).uses).Draw(t, "use")
				n := amount.Draw(t, "bytes")
				room := u.device.Memory - u.device.used()
				if got := l.alloc(u, n); got != (n <= room) {
					t.Fatalf("alloc of %d with room for %d: %t", n, room, got)
				}
			},
			"free": func(t *rapid.T) {
				u := rapid.SampledFrom(anyProcess(t).uses).Draw(t, "use")
				u.free(amount.Draw(t, "bytes"))
			},
			"load": func(t *rapid.T) {
				rapid.SampledFrom(anyProcess(t).uses).Draw(t, "use").load = load(t)
				l.settle()
			},
			"pass": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "time")))
				l.advance(now)
			},
			"": func(t *rapid.T) {
				total := 0.0
				for _, d := range l.devices {
					if used := d.used(); used < 0 || used > d.Memory {
						t.Fatalf("%d used of %d", used, d.Memory)
					}
					a := d.activity
					for _, f := range []float64{a.SMACT, a.SMOCC, a.DRAMA} {
						if !(f >= 0 && f <= 1) {
							t.Fatalf("activity %+v", a)
						}
					}
					if d.power < d.IdlePower || d.power > d.PeakPower {
						t.Fatalf("power %g", d.power)
					}
					if len(d.uses) == 0 && (d.power != d.IdlePower || d.used() != 0) {
						t.Fatalf("an empty device draws %g W and holds %d bytes", d.power, d.used())
					}
					total += d.energy
				}
				if total < energy {
					t.Fatalf("energy fell from %g to %g", energy, total)
				}
				energy = total
				for _, c := range l.processes {
					if !(c.pace > 0 && c.pace <= l.speed) {
						t.Fatalf("pace %g at speed %g", c.pace, l.speed)
					}
					for _, u := range c.uses {
						if u.held < 0 || u.peak < u.held {
							t.Fatalf("holds %d, peak %d", u.held, u.peak)
						}
					}
				}
			},
		})
	})
}

func TestPaceOfSeveralGPUsIsTheSlowest(t *testing.T) {
	l := newLedger(station(t), epoch)
	l.speed = 100
	wide, busy := newProcess(l, sim.Load{SMACT: 0.5, SMOCC: 0.2, DRAMA: 0.2}, 0, 1), newProcess(l, sim.Load{SMACT: 0.9, SMOCC: 0.4, DRAMA: 0.5}, 1)
	l.join(wide)
	if wide.pace != 100 {
		t.Errorf("alone at pace %g", wide.pace)
	}
	l.join(busy)
	if want := 100 * min(wide.uses[0].rate, wide.uses[1].rate); wide.pace != want || wide.pace >= 100 {
		t.Errorf("pace %g, want %g", wide.pace, want)
	}
	l.leave(busy)
	if wide.pace != 100 {
		t.Errorf("alone again at pace %g", wide.pace)
	}
}

func TestIdleProcessSlowsNobody(t *testing.T) {
	l := newLedger(station(t), epoch)
	idle, busy := newProcess(l, sim.Load{}, 0), newProcess(l, sim.Load{SMACT: 0.9, SMOCC: 0.4, DRAMA: 0.5}, 0)
	l.join(idle)
	l.join(busy)
	if idle.pace != 1 || busy.pace != 1 {
		t.Errorf("paces %g and %g", idle.pace, busy.pace)
	}
}

func TestFasterGPU(t *testing.T) {
	h100, err := servers.Find("dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(h100, epoch)
	c := newProcess(l, sim.Load{SMACT: 0.9, SMOCC: 0.4, DRAMA: 0.5}, 7)
	l.join(c)
	if c.pace != 1.8 {
		t.Errorf("pace %g on an H100", c.pace)
	}
}

// TestPowerOfTheOriginal: mean activity and power of AEGIS's tables.
func TestPowerOfTheOriginal(t *testing.T) {
	d := newLedger(station(t), epoch).devices[0]
	for _, c := range []struct{ smact, drama, watts float64 }{
		{0.423, 0.262, 218}, {0.736, 0.325, 252}, {0.637, 0.397, 267}, {0.430, 0.252, 213},
		{0.615, 0.366, 262}, {0.605, 0.265, 221}, {0.769, 0.338, 253},
	} {
		if got := d.watts(sim.Activity{SMACT: c.smact, DRAMA: c.drama}); math.Abs(got-c.watts) > 10 {
			t.Errorf("%g W at SMACT %g, DRAMA %g; measured %g", got, c.smact, c.drama, c.watts)
		}
	}
	if got := d.watts(sim.Activity{}); got != 53 {
		t.Errorf("%g W without load", got)
	}
}

func TestMeansAndEnergyAreOfSimulatedTime(t *testing.T) {
	l := newLedger(station(t), epoch)
	d := l.devices[0]
	c := newProcess(l, sim.Load{SMACT: 0.8, SMOCC: 0.4, DRAMA: 0.2}, 0)
	l.advance(epoch.Add(30 * time.Second))
	l.join(c)
	busy := d.power
	if want := d.watts(sim.Activity{SMACT: 0.8, SMOCC: 0.4, DRAMA: 0.2}); busy != want || want < 150 {
		t.Errorf("busy it draws %g W, want %g", busy, want)
	}
	l.advance(epoch.Add(60 * time.Second))
	s := d.sample(l.now)
	if math.Abs(s.SMACT-0.4) > 1e-9 || math.Abs(s.SMOCC-0.2) > 1e-9 || math.Abs(s.DRAMA-0.1) > 1e-9 {
		t.Errorf("half the time at 0.8, 0.4, 0.2: %+v", s)
	}
	if want := 30*53 + 30*busy; math.Abs(s.EnergyJ-want) > 1e-6 || s.PowerW != busy {
		t.Errorf("energy %g, want %g", s.EnergyJ, want)
	}
	if s := d.sample(l.now); s.SMACT != 0.8 {
		t.Errorf("no time since the last sample: %g, want what is now", s.SMACT)
	}
	l.leave(c)
	l.advance(epoch.Add(50 * time.Second)) // a clock that jumps back counts for nothing
	l.advance(epoch.Add(70 * time.Second))
	if s := d.sample(l.now); s.SMACT != 0 || math.Abs(s.EnergyJ-(40*53+30*busy)) > 1e-6 {
		t.Errorf("idle for ten seconds: %+v", s)
	}
}
