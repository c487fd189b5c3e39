package models

import (
	"slices"
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
	return words(Adam, AdamW, SGD, SGDMomentum, RMSprop, Adagrad, Adafactor, Adam8bit, Lion, NoOptimizer)
}

// Implementations lists how an optimizer's step may run, the default first.
func Implementations() []string { return []string{"foreach", "fused", "for-loop"} }

// Parallels lists the kinds of parallelism, the default first.
func Parallels() []string { return words(NotParallel, DataParallel, DDP, ZeRO1, ZeRO2, ZeRO3) }

func words[T ~string](list ...T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// Normalize writes the words of c in lower case, as the constants have them.
// [Read] and [Config.With] have done so.
func (c *Config) Normalize() {
	lower(&c.Family)
	lower(&c.Train.Precision)
	lower(&c.Train.Optimizer)
	lower(&c.Train.Implementation)
	lower(&c.Train.Parallel)
	for i := range c.Layers {
		lower(&c.Layers[i].Type)
	}
}

func lower[T ~string](word *T) { *word = T(strings.ToLower(string(*word))) }

// oneOf checks a word; an empty one is the default.
func oneOf[T ~string](field, what string, word T, list []string) error {
	if word == "" || slices.Contains(list, string(word)) {
		return nil
	}
	return wrong(field, "unknown %s %s; %s", what, Short(string(word)), choose(string(word), list))
}
