package query

import (
	"context"
	"errors"
	"testing"
	"time"

	"carma/runner/clock"
)

// TestTimelineGivesUp checks that a caller who waits for another request for a timeline can
// cancel, and that an interval without a length or longer than a month is refused.
func TestTimelineGivesUp(t *testing.T) {
	r := New(Config{Clock: clock.NewFrom(time.Now, 1)})
	if err := r.timelines.turn.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Timeline(ctx, time.Time{}, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	now := time.Now()
	for _, since := range []time.Time{now.Add(time.Hour), now.Add(-timelineMost - time.Hour)} {
		if _, err := r.Timeline(t.Context(), since, now); err == nil {
			t.Errorf("since %s it is not refused", since)
		}
	}
}
