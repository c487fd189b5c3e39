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

// chain returns a network in which each layer takes the output of the one before, with samples
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
		// more is the peak of the activations in MiB: the batch, the kept tensors, and
		// the tensors of the backward pass at its first layers.
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
		want  int64 // bytes per parameter at the peak
	}{
		{models.Train{Optimizer: models.SGD}, 8},
		{models.Train{Optimizer: models.SGDMomentum}, 12},
		{models.Train{Optimizer: models.Adam}, 20},
		{models.Train{Optimizer: models.Adam, Implementation: "fused"}, 16},
		{models.Train{Optimizer: models.Adam, Implementation: "for-loop"}, 20}, // one tensor has all parameters
		{models.Train{Optimizer: models.Adam8bit}, 10},
		{models.Train{Optimizer: models.Adam8bit, Precision: models.BF16}, 6},
		{models.Train{Optimizer: models.Adafactor}, 20}, // a vector, which has a state, and two copies in the step
		{models.Train{Optimizer: models.AdamW8bit}, 10},
		{models.Train{Optimizer: models.PagedAdamW8}, 8},
		{models.Train{Optimizer: models.PagedAdamW, Precision: models.BF16}, 4},
		{models.Train{Optimizer: models.Lion, Precision: models.BF16}, 8},
		{models.Train{Optimizer: models.Lion8bit, Precision: models.BF16}, 5},
		{models.Train{Optimizer: models.Adam, Precision: models.BF16}, 10},
		{models.Train{Optimizer: models.NoOptimizer}, 4},
		{models.Train{Optimizer: models.Adam, Parallel: models.DDP, GPUs: 2}, 24},
		// DeepSpeed's bucket of gradients is left out; besides it there is a copy of what is in it.
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Parallel: models.ZeRO1, GPUs: 4}, 11}, // 4 + (4 + 4 + 4) / 4 + 4: 32-bit weights are copied too
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Parallel: models.ZeRO2, GPUs: 4}, 11},
		// 2 + 2 + (4 + 4 + 4) / 4: states and a copy in full precision.
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Precision: models.BF16, Parallel: models.ZeRO1, GPUs: 4}, 7},
		// (4 + 4 + 4 + 4 + 4) / 4 for the sharded tensors with the copy, plus 4 + 4 for the gathered
		// weights and gradients.
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Parallel: models.ZeRO3, GPUs: 4}, 13},
		// One unit: 16 / 4, plus its gathered weights and gradients.
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Parallel: models.FSDP, GPUs: 4}, 12},
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Precision: models.AMP, Parallel: models.FSDP, GPUs: 4}, 10}, // gradients are added up in 32 bits
		{models.Train{Optimizer: models.Adam, Offload: "optimizer"}, 8},
		{models.Train{Optimizer: models.Adam, Offload: "optimizer", Precision: models.BF16, Parallel: models.ZeRO2, GPUs: 4}, 6}, // with a buffer for the largest gradient
		{models.Train{Optimizer: models.Adam, Offload: "parameters", Precision: models.BF16, Parallel: models.FSDP, GPUs: 4}, 4},
		// 2 + 2 + (4 + 4 + 4) + (4 + 4): gradients and foreach's copies have 32 bits too.
		{models.Train{Optimizer: models.Adam, Masters: true, Precision: models.BF16}, 24},
		{models.Train{Optimizer: models.Adam, Implementation: "fused", Precision: models.BF16, Parallel: models.FSDP, GPUs: 4}, 6},
	} {
		c.train.Batch = max(c.train.GPUs, 1)
		r := simulated(t, chain(c.train, op(models.Linear, params)), plain)
		got := (r.Parts[Weights] + r.Parts[Gradients] + r.Parts[States] - bucketOf(&c.train)) / params
		if got != c.want {
			t.Errorf("%+v: %d bytes a parameter, want %d", c.train, got, c.want)
		}
	}
}

// bucketOf is DeepSpeed's bucket of gradients, in bytes.
func bucketOf(t *models.Train) int64 {
	switch t.Parallel {
	case models.ZeRO1, models.ZeRO2, models.ZeRO3:
		if t.Precision == models.BF16 {
			return 2 * 500_000_000
		}
		return 4 * 500_000_000
	}
	return 0
}

// Of eight blocks, two are put together at a time, and the gradients of one. ZeRO 3 has
// a billion weights together, which is all, and an eighth of the gradients besides one.
func TestBlocksThatArePutTogether(t *testing.T) {
	const params = 8 * mib // of a block
	var layers []models.Layer
	for block := 1; block <= 8; block++ {
		l := op(models.Linear, params)
		l.Block = block
		layers = append(layers, l)
	}
	train := models.Train{Batch: 8, GPUs: 8, Optimizer: models.SGD, Precision: models.BF16}
	for _, c := range []struct {
		kind               models.Parallel
		weights, gradients int64 // in weights of a block
	}{
		{models.ZeRO3, 1 + 8, 1 + 1}, {models.FSDP, 1 + 2, 1 + 1}, {models.FSDPGrad, 1 + 7, 1 + 1} /* when the last block's gradients are added up, its weights are gone */, {models.DDP, 8, 8 + 8},
	} {
		train.Parallel = c.kind
		r := simulated(t, chain(train, layers...), plain)
		if w, g := r.Parts[Weights]/(2*params), (r.Parts[Gradients]-bucketOf(&train))/(2*params); w != c.weights || g != c.gradients {
			t.Errorf("%s: %d blocks of weights and %d of gradients, want %d and %d", c.kind, w, g, c.weights, c.gradients)
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

// TestNothingIsLost: after a training the allocator has the weights, their
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

// The cross-entropy computes in 32 bits, whatever the logits have: at the peak there
// are the logits, the output of the log-softmax, and two gradients.
func TestCrossEntropyIsComputedIn32Bits(t *testing.T) {
	const logits = 64 * mib // numbers
	for _, c := range []struct {
		precision models.Precision
		want      int64 // bytes per logit
	}{
		{models.FP32, 4 + 4 + 4 + 4},
		{models.AMP, 2 + 4 + 4 + 4},
		{models.BF16, 2 + 4 + 4 + 4},
	} {
		r := simulated(t, &models.Config{
			Train:  models.Train{Batch: 1, Optimizer: models.SGD, Precision: c.precision},
			Inputs: []models.Input{{Shape: []int64{1}}, {Shape: []int64{1}, Bytes: 8}},
			Layers: []models.Layer{
				{Type: models.Linear, Out: []int64{logits}, Params: []int64{1}},
				{Type: models.CrossEntropy, Inputs: []int{0, -2}, Out: []int64{1}, Whole: true},
			},
		}, plain)
		if got := r.Parts[Activations] / logits; got != c.want {
			t.Errorf("%s: %d bytes a logit, want %d", c.precision, got, c.want)
		}
	}
}

// A norm that divides in 32 bits keeps a copy of a 16-bit input, and a 32-bit input
// itself.
func TestInputsThatAreKeptIn32Bits(t *testing.T) {
	linear, norm := op(models.Linear, 1), op(models.RMSNorm)
	end := models.Layer{Type: models.Loss, Out: []int64{1}}
	for precision, want := range map[models.Precision]int64{models.FP32: 0, models.BF16: mib} {
		var got [2]int64
		for i, keeps := range []models.Keeps{{Inputs: []int{0}}, {Wide: []int{0}}} {
			norm.Keeps = &keeps
			c := chain(models.Train{Batch: 1, Optimizer: models.SGD, Precision: precision}, linear, norm, linear, end)
			got[i] = simulated(t, c, plain).Parts[Activations]
		}
		// The 16-bit input is freed, half a MiB.
		if want > 0 {
			want -= mib / 2
		}
		if more := got[1] - got[0]; more != want {
			t.Errorf("%s: %d bytes more, want %d", precision, more, want)
		}
	}
}

// Autocast copies the weight of a head that shares its table as well.
func TestTiedWeightsAreCopied(t *testing.T) {
	head := op(models.Linear, 64*mib)
	head.Tied = true
	var got [2]int64
	for i, layers := range [][]models.Layer{{op(models.Linear, 1)}, {op(models.Linear, 1), head}} {
		layers = append(layers, models.Layer{Type: models.Loss, Out: []int64{1}})
		got[i] = simulated(t, chain(models.Train{Batch: 1, Optimizer: models.SGD, Precision: models.AMP}, layers...), plain).Allocated
	}
	if more := (got[1] - got[0]) / mib; more < 128 || more > 130 {
		t.Errorf("%d MiB more, want the 128 MiB of its numbers in 16 bits", more)
	}
}
