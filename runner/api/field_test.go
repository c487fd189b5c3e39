package api

import (
	"strings"
	"testing"
)

// TestGPUsOfAnother: the number of GPUs is copied together with its related fields: NoGPU and
// the named GPUs.
func TestGPUsOfAnother(t *testing.T) {
	f, _ := FieldNamed("gpus")
	for text, want := range map[string]struct {
		gpus  int
		none  bool
		which string
	}{"0": {0, true, ""}, "2": {2, false, ""}, "device=1,3": {2, false, "1,3"}} {
		for _, had := range []string{"0", "4", "device=0"} {
			var changed, s Submit
			if err := f.Set(&changed, text); err != nil {
				t.Fatal(err)
			}
			if err := f.Set(&s, had); err != nil {
				t.Fatal(err)
			}
			f.Take(&s, &changed)
			if s.GPUs != want.gpus || s.NoGPU != want.none || strings.Join(s.GPUIDs, ",") != want.which {
				t.Errorf("%s in place of %s: %d GPUs %q, none: %v", text, had, s.GPUs, s.GPUIDs, s.NoGPU)
			}
			if f.Clear(&s); f.Given(&s) || s.GPUIDs != nil {
				t.Errorf("%s is not cleared: %+v", text, s)
			}
		}
	}
}
