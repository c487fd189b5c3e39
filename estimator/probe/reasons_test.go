package probe

import (
	"strings"
	"testing"

	"carma/configs/models"
)

// TestNoStep: a program without an optimizer step gives a partial record, or a
// reason.
func TestNoStep(t *testing.T) {
	c, err := hear(t, "25", "slow.py")
	if err != nil || len(find(c, models.Linear)) != 2 || c.Train.Batch != 16 || !strings.Contains(strings.Join(c.Warnings, "; "), "no optimizer step within 25 s") {
		t.Errorf("slow.py: %v, %+v", err, c)
	}
	for program, want := range map[string]string{
		"fails.py":     "the program failed: FileNotFoundError: no data set in /data",
		"nothing.py":   "the program ended without importing PyTorch",
		"notorch.py":   "no PyTorch in the image",
		"evaluates.py": "the program only infers (forward passes without gradients: 3, no optimizer): the probe estimates training",
	} {
		if c, err := hear(t, "100", program); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %+v, want %q", program, err, c, want)
		}
	}
}

// TestAdapters: trained and frozen parameters are distinguished even if no step was
// reached. An interrupted forward pass gives no estimate.
func TestAdapters(t *testing.T) {
	c, err := hear(t, "100", "adapters.py", "step")
	if err != nil {
		t.Fatal(err)
	}
	var trained, frozen int64
	for _, l := range c.Layers {
		for _, n := range l.Params {
			if l.Frozen {
				frozen += n
			} else {
				trained += n
			}
		}
	}
	if want := int64(4*(100+2*400) + 77); trained != want {
		t.Errorf("%d trained parameters, want %d", trained, want)
	}
	if want := int64(4*10_000 + 101_000 + 330); frozen != want {
		t.Errorf("%d frozen parameters, want %d", frozen, want)
	}
	_, err = hear(t, "100", "adapters.py", "forward")
	want := "the forward pass was cut off after 21800 of 145007 parameters, so its memory is not known: no optimizer step within 100 s; it was at adapters.py:20 (forward)"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestDryPass checks that a forward pass without a backward pass does not count as a part of
// the next step.
func TestDryPass(t *testing.T) {
	c, err := hear(t, "100", "dry.py")
	if err != nil || c.Train.Batch != 8 || c.Name != "Net" || len(c.Layers) != 4 {
		t.Errorf("found %+v, %v", c, err)
	}
}
