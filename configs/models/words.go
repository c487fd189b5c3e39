package models

import (
	"slices"
	"strconv"
	"strings"
)

// Families lists the families.
func Families() []string {
	return words(MLP, Conv, Transformer, Recommender, Detection, Other)
}

// Precisions lists the precisions, the default first.
func Precisions() []string { return words(FP32, AMP, BF16, FP16) }

// Optimizers lists the optimizers, the default first.
func Optimizers() []string {
	return words(Adam, AdamW, SGD, SGDMomentum, RMSprop, Adagrad, Adafactor, Adam8bit, AdamW8bit, PagedAdamW, PagedAdamW8, Lion, Lion8bit, Muon, NoOptimizer)
}

// Implementations lists the ways to run an optimizer's step, the default first.
func Implementations() []string { return []string{"foreach", "fused", "for-loop"} }

// ZeroGrads lists the times at which gradients can be set to none, the default first.
func ZeroGrads() []string { return []string{"start", "backward", "end"} }

// Attentions lists the kinds of attention.
func Attentions() []string { return []string{"eager", "sdpa", "flash"} }

// Losses lists the ways to compute a cross-entropy, the default first.
func Losses() []string { return []string{"full", "chunked"} }

// Offloadable lists the parts that can be offloaded.
func Offloadable() []string {
	return []string{OffloadOptimizer, OffloadParameters, OffloadActivations}
}

// TensorParallel returns the number of GPUs over which the kind tp:N splits each layer,
// or 0 for other kinds.
func (p Parallel) TensorParallel() int {
	digits, ok := strings.CutPrefix(string(p), "tp:")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 2 || n > MaxGPUs || strconv.Itoa(n) != digits {
		return 0
	}
	return n
}

// Parallels lists the kinds of parallelism, the default first.
func Parallels() []string {
	return words(NotParallel, DataParallel, DDP, ZeRO1, ZeRO2, ZeRO3, FSDP, FSDPGrad)
}

func words[T ~string](list ...T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// Normalize converts the words of c to lower case, like the constants. [Read] and
// [Config.With] call it.
func (c *Config) Normalize() {
	lower(&c.Family)
	lower(&c.Train.Precision)
	lower(&c.Train.Optimizer)
	lower(&c.Train.Implementation)
	lower(&c.Train.Parallel)
	lower(&c.Train.ZeroGrad)
	lower(&c.Train.Attention)
	lower(&c.Train.Loss)
	lower(&c.Train.Offload)
	for i := range c.Layers {
		lower(&c.Layers[i].Type)
	}
	c.cells()
}

func lower[T ~string](word *T) { *word = T(strings.ToLower(string(*word))) }

// oneOf checks a word. An empty word means the default.
func oneOf[T ~string](field, what string, word T, list []string) error {
	if word == "" || slices.Contains(list, string(word)) {
		return nil
	}
	return wrong(field, "unknown %s %s; %s", what, Short(string(word)), choose(string(word), list))
}
