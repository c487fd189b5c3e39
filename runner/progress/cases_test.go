package progress

import (
	"fmt"
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

// The results of a recording, in the words of docs/progress.md.
const (
	tellsShare   = "share"
	tellsLate    = "share, late" // in less than half of the second half
	tellsRate    = "rate"
	tellsNothing = "nothing"
)

// played is the reader's output while a recording was played.
type played struct {
	shares       int // pieces after which there was a share
	pieces       int // in the second half of the time
	shared, rate int // pieces with a share, and with a rate
	form         Form
}

func (p played) tells() string {
	switch {
	case 2*p.shared >= p.pieces:
		return tellsShare
	case p.shares > 0:
		return tellsLate
	case 2*p.rate >= p.pieces:
		return tellsRate
	}
	return tellsNothing
}

// TestCases checks that for each program the share is within 3 % of the real share or not
// reported, also while the rate is uncertain, and that each gives the result in
// docs/progress.md. After a quarter of the run, a trusted remaining time is within 10 % of the
// run. The same must hold if an engine's log contains progress bars only when their line ends.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/cases/*.rec")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	rows := tableOfPrograms(t)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".rec")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s: no row of docs/progress.md names it", name)
		}
		delete(rows, name)
		pieces := parseRecording(t, name, b, 1)
		got := play(t, name, name, pieces)
		if want := (programRow{string(got.form), got.tells()}); ok && row != want {
			t.Errorf("%s: docs/progress.md says %q, it is %q", name, row, want)
		}
		late := heldBack(pieces)
		if got := play(t, name, name+", held back", late); (got.shares == 0) != (row.tells == tellsRate || row.tells == tellsNothing) && len(late) > 3 {
			t.Errorf("%s, held back: a share was told in %d of %d pieces", name, got.shares, len(late))
		}
	}
	for name := range rows {
		t.Errorf("docs/progress.md names %s, which is no recording", name)
	}
}

// TestCounts: the count of a program that does not print its total continues from one epoch
// to the next.
func TestCounts(t *testing.T) {
	for name, want := range map[string]struct {
		done, epoch float64
		unit        string
	}{
		"returnn":      {1000, 5, Steps}, // 200 steps an epoch, and lines of an evaluation
		"sb3":          {204800, 0, Steps},
		"fastai_table": {10, 0, EpochsU},
	} {
		var r Reader
		var p Progress
		for i, piece := range recording(t, "cases/"+name, 1) {
			r.Feed(start.Add(piece.at), Stdout, []byte(piece.text))
			next, ok := r.Progress(start.Add(piece.at))
			if next.Restarts > 0 || next.Done < p.Done || p.Done > 0 && !ok {
				t.Fatalf("%s, piece %d: %g %s after %g, %d restarts", name, i, next.Done, next.Unit, p.Done, next.Restarts)
			}
			p = next
		}
		if math.Abs(p.Done-want.done) > 0.01*want.done || p.Epoch != want.epoch || p.Unit != want.unit || p.Total != 0 {
			t.Errorf("%s: %g of %g %s, epoch %g; want %g %s, epoch %g", name, p.Done, p.Total, p.Unit, p.Epoch, want.done, want.unit, want.epoch)
		}
	}
}

// TestFolds checks that the end of the first fold does not count as the end of the run, for any
// way to announce folds.
func TestFolds(t *testing.T) {
	pieces := recording(t, "cases/folds", 1)
	end := pieces[len(pieces)-1].at
	for _, spelling := range []string{
		"Fold %d/5", "fold: %d of 5", "FOLD %d/5 ------", "Cross-validation split %d/5", "Fold %d", "=== Fold %d ===", "[fold %d]", "Trial %d",
		"Training fold %d", "Training on fold %d ...", "--- Starting fold %d ---", "2026-03-01 09:00:00,123 - INFO - Running trial %d", "INFO:root:Fold %d", "Processing Fold: %d", "Start of fold %d", "Begin fold #%d",
	} {
		var r Reader
		fold := 0
		for i, p := range pieces[:len(pieces)-1] {
			text := p.text
			if strings.HasPrefix(text, "Fold") {
				fold++
				text = fmt.Sprintf(spelling+"\n", fold)
			}
			r.Feed(start.Add(p.at), Stdout, []byte(text))
			if got, _ := r.Progress(start.Add(p.at)); got.Share > 0 && awayFrom(got.Share, float64(p.at)/float64(end), pieces, i) {
				t.Errorf("%s, in fold %d: share %.2f, in truth %.2f (%s)", spelling, fold, got.Share, float64(p.at)/float64(end), got.Doubt)
				break
			}
		}
		if fold == 0 {
			t.Fatal("the recording has no fold")
		}
	}
}

// TestStartedAgain: after a program restarts at two fifths of its time, at most a few lines
// still give the earlier share.
func TestStartedAgain(t *testing.T) {
	const few = 6
	// A script of folds shows its position by the number of the fold alone. A script with
	// long preparation shows nothing until it trains.
	stale := map[string]bool{"folds": true, "trl_2": true}
	for name := range tableOfPrograms(t) {
		if _, part := partOfRun[name]; part || stale[name] {
			continue
		}
		pieces := recording(t, "cases/"+name, 1)
		end := pieces[len(pieces)-1].at
		var r Reader
		var off time.Duration
		for _, p := range pieces {
			if float64(p.at) <= 0.4*float64(end) {
				r.Feed(start.Add(p.at), Stdout, []byte(p.text))
				off = p.at
			}
		}
		r.Feed(start.Add(off), Stdout, []byte("\nlost the connection, starting again\n"))
		off += 20 * time.Second
		wrong := 0
		for i, p := range pieces {
			r.Feed(start.Add(off+p.at), Stdout, []byte(p.text))
			got, ok := r.Progress(start.Add(off + p.at))
			if ok && got.Share > 0 && awayFrom(got.Share, float64(p.at)/float64(end), pieces, i) {
				wrong++
			}
		}
		if wrong > few {
			t.Errorf("%s, started again: %d of %d pieces have a wrong share", name, wrong, len(pieces))
		}
	}
}

// play replays a recording and compares each share with the part of the time that has passed.
func play(t *testing.T, recording, name string, pieces []piece) (out played) {
	t.Helper()
	part, ok := partOfRun[recording]
	if !ok {
		part = [2]float64{0, 1}
	}
	end := pieces[len(pieces)-1].at
	wrong, wrongLeft := false, false
	var r Reader
	for i, piece := range pieces {
		r.Feed(start.Add(piece.at), Stdout, []byte(piece.text))
		p, ok := r.Progress(start.Add(piece.at))
		if 2*piece.at >= end {
			out.pieces++
			if p.Share > 0 {
				out.shared++
			}
			if p.Rate > 0 {
				out.rate++
			}
		}
		if ok {
			out.form = p.Source
		}
		if p.Share == 0 {
			continue
		}
		out.shares++
		truth := part[0] + (part[1]-part[0])*float64(piece.at)/float64(end)
		if !wrong && awayFrom(p.Share, truth, pieces, i) {
			t.Errorf("%s after %s, piece %d: share %.3f, in truth %.3f (%g of %g, %s)", name, piece.at.Round(time.Second), i, p.Share, truth, p.Done, p.Total, p.Doubt)
			wrong = true
		}
		left := p.Remaining.Seconds() * (part[1] - part[0]) / end.Seconds() // as a share, as truth
		if !wrongLeft && p.Trusted && 4*piece.at >= end && (p.Remaining < 0 || awayBy(left, 1-truth, 0.1, pieces, i)) {
			t.Errorf("%s after %s, piece %d: %s left, in truth %.0f s", name, piece.at.Round(time.Second), i, p.Remaining, (1-truth)*end.Seconds()/(part[1]-part[0]))
			wrongLeft = true
		}
	}
	return out
}

// awayFrom reports whether a share that is returned after piece i is off by more than 3 %. A
// share is as old as the last line.
func awayFrom(share, truth float64, pieces []piece, i int) bool {
	return awayBy(share, truth, 0.03, pieces, i)
}

// awayBy reports whether a share is off by more than most.
func awayBy(share, truth, most float64, pieces []piece, i int) bool {
	gap := 0.0
	if i > 0 {
		gap = float64(pieces[i].at-pieces[i-1].at) / float64(pieces[len(pieces)-1].at)
	}
	return math.Abs(share-truth) > most+gap
}

// programRow is the row of a recording in docs/progress.md.
type programRow struct{ form, tells string }

// tableOfPrograms reads the table of docs/progress.md, by recordings. Where the
// recordings of a program differ, a cell has one value for each, with semicolons between.
func tableOfPrograms(t *testing.T) map[string]programRow {
	t.Helper()
	b, err := os.ReadFile("../../docs/progress.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, programs := map[string]programRow{}, map[string]bool{}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || !strings.Contains(cells[2], "`") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if programs[cells[0]] {
			t.Errorf("docs/progress.md has %s twice", cells[0])
		}
		programs[cells[0]] = true
		names := strings.Split(cells[2], ", ")
		for i, name := range names {
			name = strings.Trim(name, "`")
			row := programRow{valueFor(cells[3], i), valueFor(cells[4], i)}
			if row.form == "none" {
				row.form = ""
			}
			if _, twice := rows[name]; twice {
				t.Errorf("docs/progress.md names %s twice", name)
			}
			rows[name] = row
		}
	}
	const least = 40
	if len(programs) < least {
		t.Errorf("docs/progress.md has %d programs", len(programs))
	}
	return rows
}

// valueFor returns the value of a cell for recording i.
func valueFor(cell string, i int) string {
	values := strings.Split(cell, "; ")
	return values[min(i, len(values)-1)]
}

// heldBack returns the pieces as an engine's log delivers them: at the end of a line, or after
// 16 KiB.
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
