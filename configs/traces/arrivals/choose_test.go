package arrivals

import (
	"slices"
	"testing"
	"time"

	"carma/configs/traces/joblog"
)

// TestChoose: the tasks that may be sampled, and the report on the rest.
func TestChoose(t *testing.T) {
	list := List{Arrivals: []Arrival{
		{At: 0, GPUs: 1, RunTime: time.Minute, State: joblog.Failed},
		{At: time.Second, GPUs: 1, RunTime: time.Minute, State: joblog.Killed},
		{At: 2 * time.Second, GPUs: 1, RunTime: time.Minute, State: joblog.Other},
		{At: 3 * time.Second, GPUs: 1, RunTime: joblog.Unknown},
		{At: 4 * time.Second, GPUs: 8, RunTime: time.Minute},
		{At: 5 * time.Second, GPUs: 4, RunTime: time.Minute},
	}}
	chosen, left := list.Choose(Choice{MaxGPUs: 4})
	if len(chosen.Arrivals) != 1 || chosen.Arrivals[0].GPUs != 4 || chosen.Arrivals[0].At != 0 {
		t.Errorf("chosen: %+v", chosen.Arrivals)
	}
	if want := []string{"1 failed", "1 killed", "1 suspended", "1 without a known run time", "1 on more than 4 GPUs"}; !slices.Equal(left, want) {
		t.Errorf("left out: %q", left)
	}
	chosen, left = list.Choose(Choice{Failed: true, Killed: true})
	if len(chosen.Arrivals) != 4 || !slices.Equal(left, []string{"1 suspended", "1 without a known run time"}) {
		t.Errorf("with failed and killed: %+v, left out %q", chosen.Arrivals, left)
	}
}

// TestStarts checks that a window is full from each returned start, and not from the next
// start.
func TestStarts(t *testing.T) {
	list := List{Arrivals: []Arrival{{At: 0}, {At: time.Hour}, {At: 2 * time.Hour}, {At: 5 * time.Hour}}}
	for _, c := range []struct {
		w    Window
		want int
	}{
		{Window{}, 4}, {Window{Tasks: 1}, 4}, {Window{Tasks: 3}, 2}, {Window{Tasks: 9}, 1},
		{Window{Length: 3 * time.Hour}, 3}, {Window{Length: 5 * time.Hour}, 1}, {Window{Length: 9 * time.Hour}, 1},
		{Window{Length: time.Hour, Tasks: 3}, 2},
	} {
		if n := list.Starts(c.w); n != c.want {
			t.Errorf("%+v: %d starts, want %d", c.w, n, c.want)
		}
	}
}
