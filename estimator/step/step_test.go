package step

import (
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/allocator"
	"carma/estimator/networks/zoo"
)

const mib = 1 << 20

// plain is an environment without context and workspaces.
var plain = Environment{Name: "plain"}

// chain is a network of layers each of which takes the one before, on samples
// of one MiB.
func chain(train models.Train, layers ...models.Layer) *models.Config {
	return &models.Config{Name: "chain", Train: train, Inputs: []models.Input{{Shape: []int64{mib / 4}}}, Layers: layers}
}

func op(kind string, params ...int64) models.Layer {
	return models.Layer{Type: kind, Out: []int64{mib / 4}, Params: params}
}

func simulated(t *testing.T, c *models.Config, env Environment) Result {
	t.Helper()
	r, err := Simulate(c, &env)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatIsKeptForTheGradient(t *testing.T) {
	linear := op(models.Linear, 1)
	end := models.Layer{Type: models.Loss, Out: []int64{1}}
	inPlace := func(kind string) models.Layer { l := op(kind); l.InPlace = true; return l }
	for _, c := range []struct {
		name   string
		layers []models.Layer
		// peak of the activations in MiB: the batch, what is kept, and what the
		// backward pass holds at its first layers.
		more float64
	}{
		{"ReLU keeps its output, which the next layer keeps too", []models.Layer{linear, op(models.ReLU), linear, end}, 0},
		{"in place it has no output of its own", []models.Layer{linear, inPlace(models.ReLU), linear, end}, 0},
		{"GELU keeps its input beside its output", []models.Layer{linear, op(models.GELU), linear, end}, 1},
		{"SiLU in place keeps a copy", []models.Layer{linear, inPlace(models.SiLU), linear, end}, 1},
		{"dropout keeps a byte for each element", []models.Layer{linear, op(models.Dropout), linear, end}, 0.25},
		{"a view is no memory", []models.Layer{linear, op(models.View), linear, end}, 0},
	} {
		base := simulated(t, chain(models.Train{Batch: 1, Optimizer: models.SGD}, linear, linear, end), plain).Parts[Activations]
		got := simulated(t, chain(models.Train{Batch: 1, Optimizer: models.SGD}, c.layers...), plain).Parts[Activations]
		if more := float64(got-base) / mib; more != c.more {
			t.Errorf("%s: %.2f MiB more than without, want %.2f", c.name, more, c.more)
		}
	}
}

func TestBytesOfAParameter(t *testing.T) {
	const params = 64 * mib // 256 MiB
	for _, c := range []struct {
		train models.Train
		want  int64 // bytes of a parameter at the peak
	}{
		{models.Train{Optimizer: models.SGD}, 8},
		{models.Train{Optimizer: models.SGDMomentum}, 12},
		{models.Train{Optimizer: models.Adam}, 20},
		{models.Train{Optimizer: models.Adam, Implementation: "fused"}, 16},
		{models.Train{Optimizer: models.Adam, Implementation: "for-loop"}, 20}, // one tensor has them all
		{models.Train{Optimizer: models.Adam8bit}, 10},
		{models.Train{Optimizer: models.Adam, Precision: models.BF16}, 10},
		{models.Train{Optimizer: models.NoOptimizer}, 4},
		{models.Train{Optimizer: models.Adam, Parallel: models.DDP, GPUs: 2}, 24},
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Parallel: models.ZeRO1, GPUs: 4}, 10},
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Parallel: models.ZeRO2, GPUs: 4}, 7},
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Parallel: models.ZeRO3, GPUs: 4}, 4},
	} {
		c.train.Batch = max(c.train.GPUs, 1)
		r := simulated(t, chain(c.train, op(models.Linear, params)), plain)
		got := (r.Parts[Weights] + r.Parts[Gradients] + r.Parts[States]) / params
		if got != c.want {
			t.Errorf("%+v: %d bytes a parameter, want %d", c.train, got, c.want)
		}
	}
}

func TestFrozenWeightsNeedNoGradient(t *testing.T) {
	frozen := op(models.Linear, mib)
	frozen.Frozen = true
	r := simulated(t, chain(models.Train{Batch: 1, Optimizer: models.Adam}, frozen, op(models.Linear, 1)), plain)
	if r.Parts[Gradients]+r.Parts[States] > 1024 {
		t.Errorf("gradients %d, states %d bytes for frozen weights", r.Parts[Gradients], r.Parts[States])
	}
}

func TestCheckpointingKeepsTheBlocksInputsOnly(t *testing.T) {
	var layers []models.Layer
	for block := 1; block <= 8; block++ {
		for range 4 {
			l := op(models.GELU)
			l.Block = block
			layers = append(layers, l)
		}
		l := op(models.Linear, 1)
		l.Block = block
		layers = append(layers, l)
	}
	train := models.Train{Batch: 4, Optimizer: models.SGD}
	all := simulated(t, chain(train, layers...), plain).Parts[Activations]
	train.Checkpointing = true
	few := simulated(t, chain(train, layers...), plain).Parts[Activations]
	if few*2 > all {
		t.Errorf("%d MiB with checkpointing, %d without", few/mib, all/mib)
	}
}

func TestWorkspaceThatDoesNotFitIsDoneWithout(t *testing.T) {
	conv := models.Layer{Type: models.Convolution, Out: []int64{mib / 4}, Params: []int64{9}, Kernel: []int64{3, 3}}
	env := Environment{Name: "small", Forward: 100, Data: 100, Filter: 100, Capacity: 64 * mib}
	c := chain(models.Train{Batch: 1, Optimizer: models.SGD}, conv, conv)
	if r := simulated(t, c, env); r.OutOfMemory {
		t.Error("out of memory for a workspace of 200 MiB on a GPU of 64 MiB")
	}
	env.Capacity = 0
	if r := simulated(t, c, env); r.Reserved < 200*mib {
		t.Errorf("reserved %d MiB where there is room for the workspace", r.Reserved/mib)
	}
}

func TestOutOfMemoryIsAnAnswer(t *testing.T) {
	r := simulated(t, chain(models.Train{Batch: 1000, Optimizer: models.SGD}, op(models.Linear, 1)), Environment{Name: "small", Capacity: 64 * mib})
	if !r.OutOfMemory {
		t.Errorf("%+v: 1,000 MiB fit into 64", r)
	}
}

// TestNothingIsLost: after a training the allocator holds the weights, their
// gradients and states, the batch, and what the script holds of the last step.
func TestNothingIsLost(t *testing.T) {
	for _, name := range []string{"resnet50", "bert_base", "inception_v3", "densenet121", "xlnet_base", "unet"} {
		for _, checkpointing := range []bool{false, true} {
			c, err := zoo.Build(name, models.Overrides{Batch: 2, Checkpointing: &checkpointing})
			if err != nil {
				t.Fatal(err)
			}
			p, err := Prepare(c)
			if err != nil {
				t.Fatal(err)
			}
			env := plain
			r := newRun(p, &env)
			if err := r.steps(); err != nil {
				t.Fatal(err)
			}
			for _, cs := range [][]chunk{r.weight, r.gradient, r.state} {
				r.releaseAll(cs)
			}
			var left int64
			for k, n := range r.now {
				left += n
				if Kind(k) != Activations && n != 0 {
					t.Errorf("%s, checkpointing %v: %d bytes of kind %d are left", name, checkpointing, n, k)
				}
			}
			batch, results := int64(0), int64(0)
			for v := range p.inputs {
				batch += p.storages[p.values[v].storage].bytes
			}
			last := p.layers[len(p.layers)-1]
			for _, v := range append([]int32{last.value}, last.inputs...) {
				results += p.values[v].bytes
			}
			if left > batch+results || left < batch {
				t.Errorf("%s, checkpointing %v: %d bytes are left, want the batch (%d) and the results (%d)", name, checkpointing, left, batch, results)
			}
		}
	}
}

func TestEveryNetworkGrowsWithItsBatch(t *testing.T) {
	for _, name := range zoo.Names() {
		var last int64
		for _, batch := range []int{1, 4, 16} {
			c, err := zoo.Build(name, models.Overrides{Batch: batch})
			if err != nil {
				t.Fatal(err)
			}
			r := simulated(t, c, plain)
			if r.Allocated < last || r.Reserved < r.Allocated {
				t.Errorf("%s at batch %d: %d allocated, %d reserved, %d allocated before", name, batch, r.Allocated, r.Reserved, last)
			}
			last = r.Allocated
		}
	}
}

func TestImpossibleLayersAreNamed(t *testing.T) {
	for _, c := range []struct {
		l    models.Layer
		want string
	}{
		{models.Layer{Name: "fc", Type: models.Linear, Out: []int64{0}}, "layer 1 (fc): output of shape [0]"},
		{models.Layer{Type: models.Linear, Out: []int64{1 << 40, 1 << 40}}, "layer 1 (linear): output of shape"},
		{models.Layer{Type: models.Add, Out: []int64{1}, Inputs: []int{5}}, "takes the output of layer 6, which does not come before"},
		{models.Layer{Type: models.Linear, Out: []int64{1}, Params: []int64{-1}}, "-1 parameters are out of range"},
		{models.Layer{Type: models.Linear, Out: []int64{1}, Params: []int64{allocator.MaxRequest}}, "parameters are out of range"},
	} {
		env := plain
		if _, err := Simulate(chain(models.Train{Batch: 1}, c.l), &env); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.l, err, c.want)
		}
	}
}

func BenchmarkSimulate(b *testing.B) {
	for _, name := range []string{"resnet50", "bert_base", "efficientnet_b0"} {
		b.Run(name, func(b *testing.B) {
			c, err := zoo.Build(name, models.Overrides{Batch: 64})
			if err != nil {
				b.Fatal(err)
			}
			env := Environment{CuBLAS: 8519680, Forward: 2, Data: 2, Filter: 2, Weight: 1}
			for b.Loop() {
				if _, err := Simulate(c, &env); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
