package waitreason

import (
	"testing"
	"time"

	"carma/mapper"
	"carma/mapper/model"
)

// TestExplanationsAreBounded checks that the loop computes a limited number of reasons per
// second for any number of listings, and returns older reasons beyond that. Infrequent requests
// get new reasons.
func TestExplanationsAreBounded(t *testing.T) {
	s := mapper.New(mapper.DefaultOptions())
	s.Step(model.TaskSubmitted{At: 1, Request: model.Request{ID: 1, GPUs: 1}})
	var e Cache
	now := time.Unix(1000, 0)
	for range 10 * perSecond {
		if x := e.Of(s, 1, now); !x.Known || x.at.IsZero() {
			t.Fatalf("%+v", x)
		}
	}
	if e.worked != perSecond {
		t.Errorf("%d reasons were worked out in a second, want %d", e.worked, perSecond)
	}
	if x := e.Of(s, 1, now.Add(999*time.Millisecond)); x.at != now {
		t.Errorf("worked out anew at %s", x.at)
	}
	if x := e.Of(s, 1, now.Add(time.Second)); x.at != now.Add(time.Second) {
		t.Errorf("in the next second it is from %s", x.at)
	}
}
