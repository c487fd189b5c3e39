package waitreason

import (
	"testing"

	"carma/mapper/model"
	"carma/runner/api"
)

// TestWaitedIsBounded checks that the first and the last of many reasons are kept, and the
// reasons of the newest of many tasks.
func TestWaitedIsBounded(t *testing.T) {
	var w Recorder
	for i := range 3 * waitsEach {
		w.add(7, Line{Happened: api.Happened{Reason: string(rune('a' + i%2)), Text: string(rune('a' + i))}})
	}
	if got := w.Reasons(7); len(got) != waitsEach || got[0].Text != "a" || got[waitsEach-1].Text != string(rune('a'+3*waitsEach-1)) {
		t.Errorf("%d are kept: %+v", len(got), got)
	}
	for id := range model.TaskID(waitsKept + 5) {
		w.add(id+1, Line{Happened: api.Happened{Reason: "a"}})
	}
	if len(w.of) != waitsKept || w.of[1] != nil || w.of[waitsKept] == nil {
		t.Errorf("of %d tasks", len(w.of))
	}
}
