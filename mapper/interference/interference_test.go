package interference

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Tasks of the measured pairs.
var (
	vgg128  = Load{SMACT: 0.8263, SMOCC: 0.4212, DRAMA: 0.4108, Step: 0.2666}
	vgg32   = Load{SMACT: 0.8140, SMOCC: 0.4203, DRAMA: 0.4359, Step: 0.0758}
	resnet  = Load{SMACT: 0.6855, SMOCC: 0.3475, DRAMA: 0.4709, Step: 0.0973}
	small   = Load{SMACT: 0.1653, SMOCC: 0.0617, DRAMA: 0.0490, Step: 0.0153} // ResNet-18 on CIFAR-100
	smaller = Load{SMACT: 0.1578, SMOCC: 0.0900, DRAMA: 0.0051, Step: 0.0250} // MobileNet on CIFAR-100
)

// TestMeasuredPairs checks the shape of measurements: which task is slowed down by which.
func TestMeasuredPairs(t *testing.T) {
	for _, c := range []struct {
		name         string
		a, b         Load
		wantA, wantB float64
	}{
		{"small beside large batches", small, vgg128, 0.32, 0.98},
		{"another", smaller, vgg128, 0.40, 0.98},
		{"small beside small batches", small, vgg32, 0.58, 0.98},
		{"small beside medium", small, resnet, 0.82, 0.95},
		{"small beside small", small, smaller, 1.0, 1.0},
		{"medium beside large batches", resnet, vgg128, 0.42, 0.83},
		{"equal model, unequal batches", vgg32, vgg128, 0.41, 0.80},
	} {
		got := Speeds([]Load{c.a, c.b})
		if math.Abs(got[0]-c.wantA) > 0.13 || math.Abs(got[1]-c.wantB) > 0.13 {
			t.Errorf("%s: %.2f and %.2f, measured %.2f and %.2f", c.name, got[0], got[1], c.wantA, c.wantB)
		}
	}
}

func TestManyTasks(t *testing.T) {
	for _, c := range []struct {
		name     string
		load     Load
		k        int
		min, max float64 // of the sum of speeds
	}{
		{"four heavy", vgg128, 4, 1, 1.3},
		{"three medium", resnet, 3, 1, 1.7},
		{"four small", small, 4, 3.8, 4},
		{"ten small", small, 10, 5, 7},
	} {
		loads := make([]Load, c.k)
		for i := range loads {
			loads[i] = c.load
		}
		sum := 0.0
		for _, s := range Speeds(loads) {
			sum += s
		}
		if sum < c.min || sum > c.max {
			t.Errorf("%s go at %.2f together, want %.2f to %.2f", c.name, sum, c.min, c.max)
		}
	}
}

func TestNonsense(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, loads := range [][]Load{
		{}, {{}}, {{}, {}}, {{SMACT: nan}, {SMACT: inf, DRAMA: -inf, Step: inf}}, {{SMACT: 5, Step: nan}, {DRAMA: 7, Step: -1}},
		{{SMACT: 1, Step: math.MaxFloat64}, {SMACT: 1, Step: math.SmallestNonzeroFloat64}},
	} {
		for i, s := range Speeds(loads) {
			if !(s > 0 && s <= 1) {
				t.Errorf("%+v: task %d at %v", loads, i, s)
			}
		}
	}
	if got := Speeds([]Load{{SMACT: 1, DRAMA: 1}}); got[0] != 1 {
		t.Errorf("alone at %v", got[0])
	}
}

func loadGen(t *rapid.T) []Load {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Load {
		share := rapid.Float64Range(0, 1)
		return Load{share.Draw(t, "smact"), share.Draw(t, "smocc"), share.Draw(t, "drama"), rapid.Float64Range(0, 2).Draw(t, "step")}
	}), 1, 24).Draw(t, "loads")
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := loadGen(t)
		speeds := Speeds(loads)
		sm, dram := 0.0, 0.0
		for i, s := range speeds {
			if !(s > 0 && s <= 1) || len(loads) == 1 && s != 1 {
				t.Fatalf("speed %v of %d tasks", s, len(loads))
			}
			sm += s * loads[i].SMACT
			dram += s * loads[i].DRAMA
		}
		if sm > 1+1e-9 || dram > 1+1e-9 {
			t.Fatalf("SM time %v, DRAM time %v of one GPU", sm, dram)
		}
		order := rapid.Permutation(indexes(len(loads))).Draw(t, "order")
		shuffled := make([]Load, len(loads))
		for i, o := range order {
			shuffled[i] = loads[o]
		}
		for i, s := range Speeds(shuffled) {
			if s != speeds[order[i]] {
				t.Fatalf("task %d at %v, elsewhere in the list at %v", order[i], speeds[order[i]], s)
			}
		}
	})
}

// TestNeighbourHurts checks that a further task makes no task faster, as long as there is
// SM and DRAM time for all of them.
func TestNeighbourHurts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := loadGen(t)
		sm, dram := 0.0, 0.0
		for i := range loads {
			loads[i].SMACT /= float64(len(loads))
			loads[i].DRAMA /= float64(len(loads))
			sm += loads[i].SMACT
			dram += loads[i].DRAMA
		}
		if sm > 1 || dram > 1 {
			t.Skip("rounding")
		}
		before := Speeds(loads[:len(loads)-1])
		for i, s := range Speeds(loads)[:len(loads)-1] {
			if s > before[i]+1e-12 {
				t.Fatalf("task %d at %v, with a neighbour more at %v", i, before[i], s)
			}
		}
	})
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestOneAllocation(t *testing.T) {
	loads := []Load{vgg128, small, smaller, resnet}
	if n := testing.AllocsPerRun(100, func() { Speeds(loads) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSpeeds(b *testing.B) {
	loads := []Load{vgg128, small, smaller, resnet}
	for b.Loop() {
		Speeds(loads)
	}
}
