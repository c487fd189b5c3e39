package progress

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// partOfRun is the part of the run that a recording in testdata/cases shows, where it is
// not the whole: from and to are shares.
var partOfRun = map[string][2]float64{"dinov2": {0, 1990. / 125000}, "hf_resumed": {0.5, 1}}

// withheld are the recordings that tell no total.
var withheld = map[string]bool{"fastai_table": true, "returnn": true, "sb3": true}

// TestCases: of programs in public reports a share is within 3 % of the truth or withheld,
// also while its rate is doubted, and all programs that tell a total have one. It is so,
// too, where an engine's log holds bars back until their line ends.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/cases/*.rec")
	if err != nil || len(paths) < 27 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".rec")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pieces := parseRecording(t, name, b, 1)
		if told := checkShares(t, name, name, pieces); withheld[name] != (told == 0) {
			t.Errorf("%s: a share was told in %d of %d pieces", name, told, len(pieces))
		}
		late := heldBack(pieces)
		if told := checkShares(t, name, name+", held back", late); withheld[name] != (told == 0) && len(late) > 3 {
			t.Errorf("%s, held back: a share was told in %d of %d pieces", name, told, len(late))
		}
	}
}

// checkShares plays a recording and compares each share with the part of the time that
// has passed. It returns how many there were.
func checkShares(t *testing.T, recording, name string, pieces []piece) (told int) {
	t.Helper()
	part, ok := partOfRun[recording]
	if !ok {
		part = [2]float64{0, 1}
	}
	end := pieces[len(pieces)-1].at
	var r Reader
	for i, piece := range pieces {
		r.Feed(start.Add(piece.at), Stdout, []byte(piece.text))
		p, ok := r.Progress(start.Add(piece.at))
		if !ok || p.Share == 0 {
			continue
		}
		told++
		truth := part[0] + (part[1]-part[0])*float64(piece.at)/float64(end)
		gap := 0.0 // a share is as old as the last line
		if i > 0 {
			gap = float64(piece.at-pieces[i-1].at) / float64(end)
		}
		if math.Abs(p.Share-truth) > 0.03+gap {
			t.Errorf("%s after %s, piece %d: share %.3f, in truth %.3f (%g of %g, %s)", name, piece.at.Round(time.Second), i, p.Share, truth, p.Done, p.Total, p.Doubt)
			break
		}
	}
	return told
}

// heldBack returns the pieces as an engine's log hands them over: with a line's end, or
// 16 KiB at once.
func heldBack(pieces []piece) []piece {
	const most = 16 << 10
	var out []piece
	var held string
	for i, p := range pieces {
		held += p.text
		cut := strings.LastIndexByte(held, '\n') + 1
		if i == len(pieces)-1 || cut == 0 && len(held) > most {
			cut = len(held)
		}
		if cut > 0 {
			out = append(out, piece{p.at, held[:cut]})
			held = held[cut:]
		}
	}
	return out
}
