package limits

import (
	"slices"
	"strconv"
	"strings"
)

// The variables by which frameworks limit their GPU memory.
const (
	jaxPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE"
	jaxFraction    = "XLA_CLIENT_MEM_FRACTION"
	// jaxFractionOld is the name that every version of JAX reads. A version that reads both
	// names refuses to have both set, and falls back to the CPU.
	jaxFractionOld = "XLA_PYTHON_CLIENT_MEM_FRACTION"
	tfGrowth       = "TF_FORCE_GPU_ALLOW_GROWTH"
	torchConf      = "PYTORCH_ALLOC_CONF"
	// torchConfOld is the only name that PyTorch before 2.9 reads. Later versions read it if
	// torchConf is not set.
	torchConfOld  = "PYTORCH_CUDA_ALLOC_CONF"
	torchFraction = "per_process_memory_fraction"
)

var heeded = []string{jaxPreallocate, jaxFraction, jaxFractionOld, tfGrowth, torchConf, torchConfOld}

// Heeded returns the entries of an environment, KEY=value, that decide the results of
// [Growth] and [Fractions].
func Heeded(env []string) (out []string) {
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		if slices.Contains(heeded, key) {
			out = append(out, kv)
		}
	}
	return out
}

// Growth returns variables that make frameworks allocate GPU memory when they need it,
// not all of it at their start. Variables that the environment has are left out.
func Growth(have []string) (add []string) {
	for _, kv := range []string{jaxPreallocate + "=false", tfGrowth + "=true"} {
		key, _, _ := strings.Cut(kv, "=")
		if _, set := last(have, key); !set {
			add = append(add, kv)
		}
	}
	return add
}

// Fractions returns variables that make the allocators of JAX and PyTorch stop at a
// fraction of a GPU, 0 to 1, unless the environment already sets another limit. A
// fraction of 0 or less, or of 1 or more, sets nothing.
//
// PyTorch's setting is added to the value that its variable has. It is set in the newer
// variable only, because versions of PyTorch that read only the older one end with
// "Unrecognized CachingAllocator option". So do some versions that read the newer one.
func Fractions(have []string, fraction float64) (add []string) {
	if !(fraction > 0 && fraction < 1) {
		return nil
	}
	text := strconv.FormatFloat(fraction, 'f', 3, 64)
	_, named := last(have, jaxFraction)
	_, old := last(have, jaxFractionOld)
	if !named && !old {
		add = append(add, jaxFractionOld+"="+text)
	}
	conf, set := last(have, torchConf)
	if !set {
		conf, _ = last(have, torchConfOld)
	}
	if strings.Contains(conf, torchFraction) {
		return add
	}
	return append(add, torchConf+"="+strings.TrimPrefix(strings.Trim(conf, ", ")+",", ",")+torchFraction+":"+text)
}

// Fraction returns the part of a GPU's capacity for a task's allocator: its
// grant less its CUDA context, all in bytes, rounded down to a thousandth, at
// most 1. It is 0, for no limit, if the grant leaves nothing.
func Fraction(grant, context, capacity int64) float64 {
	if capacity <= 0 || grant <= context {
		return 0
	}
	return min(1, float64((grant-context)*1000/capacity)/1000)
}

// last returns the last value of a variable in an environment.
func last(env []string, key string) (value string, ok bool) {
	for _, kv := range slices.Backward(env) {
		if v, found := strings.CutPrefix(kv, key+"="); found {
			return v, true
		}
	}
	return "", false
}
