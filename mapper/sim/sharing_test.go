package sim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carma/mapper"
)

// TestBusy: the share of busy time is near where it was published: NVML's GPU
// utilization in AEGIS's solo profiles and, over traces run with one task per
// GPU, in its result tables.
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

// TestTimeSlicingProperties: what makes it time-slicing.
func TestTimeSlicingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := loadGen(t)
		mps, speeds := MPS.Speeds(loads), TimeSlicing.Speeds(loads)
		sm, busy, turn, held := 0.0, 0.0, 0.0, false
		for i, s := range speeds {
			switch {
			case len(loads) == 1 && s != 1:
				t.Fatalf("alone at %v", s)
			case !(s > 0) || s > mps[i]:
				t.Fatalf("task %d at %v, under MPS at %v", i, s, mps[i])
			}
			sm += s * loads[i].SMACT
			busy += s * loads[i].Busy()
			if s < mps[i] {
				held = true
				turn = s * loads[i].Busy()
			}
		}
		if len(loads) > 1 && (sm > 1 || busy > 1-switchCost+1e-9) {
			t.Fatalf("SM time %v, GPU time %v", sm, busy)
		}
		if !held {
			return
		}
		if math.Abs(busy-(1-switchCost)) > 1e-9 {
			t.Fatalf("tasks are held back while %v of the time is used", busy)
		}
		for i, s := range speeds {
			mine := s * loads[i].Busy()
			if mine > turn+1e-9 || s < mps[i] && mine < turn-1e-9 {
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
		{"four heavy ones share in turns", []Load{vgg128, vgg128, vgg128, vgg128}, 1.0, 1.02},
		{"two medium ones", []Load{resnet, resnet}, 1.05, 1.1},
		{"ten small ones", []Load{small, small, small, small, small, small, small, small, small, small}, 1.7, 1.75},
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

// TestTimeSlicingReplay: the replay goes by it.
func TestTimeSlicingReplay(t *testing.T) {
	opt := options("magm")
	opt.WarmUp, opt.SMACTCap = 0, 0
	tasks := []Task{training(0, time.Hour, 4*mapper.GiB, resnet), training(0, time.Hour, 4*mapper.GiB, resnet)}
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
