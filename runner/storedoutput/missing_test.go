package storedoutput

import (
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/runner/tasklog"
)

// TestEngineThrewAway: if an engine's driver reports missing output, a note takes its
// place.
func TestEngineThrewAway(t *testing.T) {
	s := tasklog.Open(t.TempDir(), 0)
	w, err := s.Writer(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1000, 0)
	line := func(n int, text string) {
		if err := w.Write(at.Add(time.Duration(n)), tasklog.Stdout, []byte(text), false); err != nil {
			t.Fatal(err)
		}
	}
	line(1, "1")
	NoteMissing(w, at.Add(2), containers.Lines{Lines: 3}.Text())
	line(3, "5")
	NoteMissing(w, at.Add(4), containers.Lines{Before: 10}.Text())
	line(5, "11")
	NoteMissing(w, at.Add(6), containers.Lines{Before: 11}.Text()) // nothing is missing
	NoteMissing(w, at.Add(6), containers.Lines{Lines: -1}.Text())
	line(7, "x")
	NoteMissing(w, at.Add(8), containers.Lines{Before: 13}.Text())
	line(9, "y")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines, err := s.Tail(1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, strings.TrimSuffix(string(l.Text), " left out here: "+thrownAway))
	}
	if want := []string{"1", "3 lines", "5", "5 lines", "11", "an unknown number of lines", "x", "1 lines", "y"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
