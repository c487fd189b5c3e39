package limits

import (
	"slices"
	"testing"
)

func TestGrowth(t *testing.T) {
	for _, row := range []struct{ have, want []string }{
		{nil, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false", "TF_FORCE_GPU_ALLOW_GROWTH=true"}},
		{[]string{"TF_FORCE_GPU_ALLOW_GROWTH=false"}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}},
		{[]string{"XLA_PYTHON_CLIENT_PREALLOCATE="}, []string{"TF_FORCE_GPU_ALLOW_GROWTH=true"}},
	} {
		if got := Growth(row.have); !slices.Equal(got, row.want) {
			t.Errorf("beside %q: %q, want %q", row.have, got, row.want)
		}
	}
}

func TestFractions(t *testing.T) {
	const jax, torch = "XLA_PYTHON_CLIENT_MEM_FRACTION=0.250", "PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.250"
	for _, row := range []struct {
		fraction float64
		have     []string
		want     []string
	}{
		{0.25, nil, []string{jax, torch}},
		{0, nil, nil},
		{-1, nil, nil},
		{1, nil, nil},
		// A JAX that finds both names falls back to the CPU.
		{0.25, []string{"XLA_CLIENT_MEM_FRACTION=.5"}, []string{torch}},
		{0.25, []string{"XLA_PYTHON_CLIENT_MEM_FRACTION=.5"}, []string{torch}},
		{0.25, []string{"PYTORCH_ALLOC_CONF=expandable_segments:True"},
			[]string{jax, "PYTORCH_ALLOC_CONF=expandable_segments:True,per_process_memory_fraction:0.250"}},
		// The newer variable hides the older one, so it gets the older one's
		// value too.
		{0.25, []string{"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,"},
			[]string{jax, "PYTORCH_ALLOC_CONF=max_split_size_mb:64,per_process_memory_fraction:0.250"}},
		{0.25, []string{"PYTORCH_CUDA_ALLOC_CONF=a:1", "PYTORCH_ALLOC_CONF=b:2"},
			[]string{jax, "PYTORCH_ALLOC_CONF=b:2,per_process_memory_fraction:0.250"}},
		{0.25, []string{"PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.9"}, []string{jax}},
		{0.25, []string{"PYTORCH_ALLOC_CONF=a:1", "PYTORCH_ALLOC_CONF="}, []string{jax, torch}}, // the last one counts
	} {
		if got := Fractions(row.have, row.fraction); !slices.Equal(got, row.want) {
			t.Errorf("%v beside %q: %q, want %q", row.fraction, row.have, got, row.want)
		}
	}
}

func TestFraction(t *testing.T) {
	const gib = 1 << 30
	for _, row := range []struct {
		grant, context, capacity int64
		want                     float64
	}{
		{10 * gib, 0, 40 * gib, 0.25},
		{10 * gib, 2 * gib, 40 * gib, 0.2},
		{gib, gib, 40 * gib, 0},     // nothing is left
		{gib, 2 * gib, 40 * gib, 0}, // less than nothing
		{gib, 0, 0, 0},              // the card's size is not known
		{50 * gib, 0, 40 * gib, 1},
		{gib, 0, 3 * gib, 0.333}, // never more than was granted
	} {
		if got := Fraction(row.grant, row.context, row.capacity); got != row.want {
			t.Errorf("%d less %d of %d: %v, want %v", row.grant, row.context, row.capacity, got, row.want)
		}
	}
}

func TestHeeded(t *testing.T) {
	got := Heeded([]string{"PATH=/bin", "TF_FORCE_GPU_ALLOW_GROWTH=false", "PYTORCH_CUDA_ALLOC_CONF=a:1", "XLA_FLAGS=x", "XLA_CLIENT_MEM_FRACTION=.1"})
	want := []string{"TF_FORCE_GPU_ALLOW_GROWTH=false", "PYTORCH_CUDA_ALLOC_CONF=a:1", "XLA_CLIENT_MEM_FRACTION=.1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
