//go:build e2e

package test

import (
	"strings"
	"testing"
)

// TestProve: the container of a proof sees the variables that bound frameworks,
// and it is removed afterwards.
func TestProve(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--memory-caps", "fractions")
	s.start()
	r := s.carma("doctor", "--prove", tool)
	for _, want := range []string{
		"\nok       GPU memory limits", "framework caps (JAX, PyTorch), watchdog: relaunch (no driver limit: the GPUs are simulated; no MPS limit: MPS is off)",
		"\nok       proof on GPU 0", "\nok       proof on GPU 3", "XLA_PYTHON_CLIENT_PREALLOCATE=false, TF_FORCE_GPU_ALLOW_GROWTH=true", "not proven: that the GPU heeds it",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%v\nlacks %q", r, want)
		}
	}
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
	if list := s.engine.gone(t, s.instance()); len(list) != 4 { // one for each GPU
		t.Errorf("its containers: %v", brief(list))
	}
}
