package mapper

import (
	"math"
	"strings"
	"testing"
	"time"

	"carma/mapper/model"
)

func TestOptions(t *testing.T) {
	if err := Validate(DefaultOptions()); err != nil {
		t.Error(err)
	}
	for want, edit := range map[string]func(*model.Options){
		"unknown policy":    func(o *model.Options) { o.Policy = "" },
		"headroom is neg":   func(o *model.Options) { o.Headroom = -1 },
		"min-free is neg":   func(o *model.Options) { o.MinFree = -1 },
		"larger than any":   func(o *model.Options) { o.Headroom = math.MaxInt64 },
		"smact-cap NaN":     func(o *model.Options) { o.SMACTCap = math.NaN() },
		"smact-cap 80":      func(o *model.Options) { o.SMACTCap = 80 },
		"max-tasks is neg":  func(o *model.Options) { o.MaxTasks = -1 },
		"warm-up, ageing":   func(o *model.Options) { o.WarmUp = -1 },
		"backoff, interval": func(o *model.Options) { o.Backoff = -1 },
		"more than a day":   func(o *model.Options) { o.Backoff = 25 * time.Hour },
		"look-ahead is 0":   func(o *model.Options) { o.LookAhead = 0 },
		"attempts is 0":     func(o *model.Options) { o.Attempts = 0 },
		"blameless-retries": func(o *model.Options) { o.BlamelessRetries = -1 },
	} {
		o := DefaultOptions()
		edit(&o)
		if err := Validate(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a state was made under an unknown policy")
		}
	}()
	New(model.Options{Policy: "no such"})
}
