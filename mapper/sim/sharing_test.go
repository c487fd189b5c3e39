package sim

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"

	"pgregory.net/rapid"
)

// TestBusy checks that Busy is near published figures: NVML's GPU utilization in AEGIS's
// solo profiles and, over traces run with one task per GPU, in its result tables.
func TestBusy(t *testing.T) {
	sum := 0.0
	published := []struct {
		name string
		load Load
		want float64
	}{
		{"bert-large", Load{SMACT: 0.7255, DRAMA: 0.1225}, 0.7519},
		{"llama3, 8 layers", Load{SMACT: 0.2955, DRAMA: 0.6101}, 0.977},
		{"xlnet-large", Load{SMACT: 0.8047, DRAMA: 0.2106}, 0.9187},
		{"a trace alone", Load{SMACT: 0.4231, DRAMA: 0.2623}, 0.7532},
		{"another", Load{SMACT: 0.4299, DRAMA: 0.2518}, 0.7474},
		{"a third", Load{SMACT: 0.6052, DRAMA: 0.2646}, 0.7697},
	}
	for _, c := range published {
		e := math.Abs(c.load.Busy() - c.want)
		sum += e
		if e > 0.15 {
			t.Errorf("%s: %.3f, published %.3f", c.name, c.load.Busy(), c.want)
		}
	}
	if mean := sum / float64(len(published)); mean > 0.07 {
		t.Errorf("%.3f off on average", mean)
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, l := range loadGen(t) {
			if b := l.Busy(); b < l.SMACT || b < l.DRAMA || b > 1 {
				t.Fatalf("%+v is busy for %v of the time", l, b)
			}
		}
	})
}

// switchCost is the share of the time that is lost between turns, as in
// interference.TakeTurns.
const switchCost = 0.10

// TestTimeSlicingProperties checks the defining properties of time-slicing.
func TestTimeSlicingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := loadGen(t)
		mps, speeds := MPS.Speeds(loads), TimeSlicing.Speeds(loads)
		wanted, busy, turn := 0.0, 0.0, 0.0
		for i, s := range speeds {
			if len(loads) == 1 && s != 1 || !(s > 0 && s <= 1) {
				t.Fatalf("task %d of %d at %v", i, len(loads), s)
			}
			wanted += loads[i].Busy()
			busy += s * loads[i].Busy()
			turn = max(turn, s*loads[i].Busy())
		}
		if wanted <= 1-switchCost-1e-9 {
			for i, s := range speeds {
				if s != mps[i] {
					t.Fatalf("task %d at %v though there is time for all; under MPS at %v", i, s, mps[i])
				}
			}
			return
		}
		if len(loads) > 1 && math.Abs(busy-(1-switchCost)) > 1e-9 {
			t.Fatalf("tasks want %v of the time and have %v", wanted, busy)
		}
		for i, s := range speeds {
			if mine := s * loads[i].Busy(); s < 1 && mine < turn-1e-9 {
				t.Fatalf("task %d has %v of the time, another a turn of %v", i, mine, turn)
			}
		}
		order := rapid.Permutation(indexes(len(loads))).Draw(t, "order")
		shuffled := make([]Load, len(loads))
		for i, o := range order {
			shuffled[i] = loads[o]
		}
		for i, s := range TimeSlicing.Speeds(shuffled) {
			if s != speeds[order[i]] {
				t.Fatalf("task %d at %v, elsewhere in the list at %v", order[i], speeds[order[i]], s)
			}
		}
	})
}

func TestTimeSlicingFigures(t *testing.T) {
	for _, c := range []struct {
		name     string
		loads    []Load
		min, max float64 // of the sum of speeds
	}{
		{"four heavy ones share in turns", []Load{vgg128, vgg128, vgg128, vgg128}, 0.95, 0.97},
		{"two medium ones", []Load{resnet, resnet}, 1.01, 1.03},
		{"ten small ones", []Load{small, small, small, small, small, small, small, small, small, small}, 1.63, 1.65},
		{"two that hardly do anything", []Load{{SMACT: 0.05}, {SMACT: 0.05}}, 1.99, 2},
	} {
		sum := 0.0
		for _, s := range TimeSlicing.Speeds(c.loads) {
			sum += s
		}
		if sum < c.min || sum > c.max {
			t.Errorf("%s go at %.3f together, want %.2f to %.2f", c.name, sum, c.min, c.max)
		}
	}
	for _, loads := range [][]Load{{}, {{}}, {{}, {}}, {{SMACT: math.NaN()}, {SMACT: 9, DRAMA: -1}}} {
		for i, s := range TimeSlicing.Speeds(loads) {
			if !(s > 0 && s <= 1) {
				t.Errorf("%+v: task %d at %v", loads, i, s)
			}
		}
	}
}

// TestTimeSlicingReplay checks that the replay uses it.
func TestTimeSlicingReplay(t *testing.T) {
	opt := options("magm")
	opt.WarmUp, opt.SMACTCap = 0, 0
	tasks := []Task{training(0, time.Hour, 4*units.GiB, resnet), training(0, time.Hour, 4*units.GiB, resnet)}
	r := mustRun(t, Config{Options: opt, GPUs: station(1), Sharing: TimeSlicing}, tasks)
	want := 1 / TimeSlicing.Speeds([]Load{resnet, resnet})[0]
	if got := r.Metrics.WorstSlowdown; got < 1.8 || math.Abs(got/want-1) > 0.01 {
		t.Errorf("slowdown %.3f, the model says %.3f", got, want)
	}
	if _, err := Run(Config{Options: opt, GPUs: station(1), Sharing: 7}, tasks); err == nil {
		t.Error("sharing 7 was accepted")
	}
	for _, name := range SharingNames() {
		if s, err := ParseSharing(name); err != nil || s.String() != name {
			t.Errorf("%s: %s, %v", name, s, err)
		}
	}
	if _, err := ParseSharing("mig"); err == nil {
		t.Error("unknown sharing was accepted")
	}
}
