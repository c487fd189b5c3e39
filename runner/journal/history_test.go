package journal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestDamagedEvents(t *testing.T) {
	for _, tt := range []struct {
		name, damage string
		after        int64
		good         int
		want         string
	}{
		{"gap", "DELETE FROM events WHERE seq = 300", 0, 299, "event 300 is missing"},
		{"gap at the start", "DELETE FROM events WHERE seq <= 10", 0, 0, "event 1 is missing"},
		{"at the gap", "DELETE FROM events WHERE seq <= 10", 10, 0, "event 10 is missing"},
		{"behind the gap", "DELETE FROM events WHERE seq <= 10", 11, 589, ""},
		{"body", "UPDATE events SET body = x'78' WHERE seq = 257", 0, 256, "event 257 (kind-x) has a wrong checksum"},
		{"kind", "UPDATE events SET kind = 'y' WHERE seq = 2", 0, 1, "event 2 (y) has a wrong checksum"},
		{"time", "UPDATE events SET at = at + 1 WHERE seq = 2", 0, 1, "event 2"},
		{"swapped", "UPDATE events SET (at, kind, body, sum) = (SELECT at, kind, body, sum FROM events WHERE seq = 9) WHERE seq = 8", 0, 7, "event 8"},
		{"starts after the end", "SELECT 1", 601, 0, "it ends at event 600, before 601"},
		{"nothing new", "SELECT 1", 600, 0, ""},
		{"end lost", "DELETE FROM events WHERE seq > 550", 0, 550, "event 551 is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := mustOpen(t, t.TempDir())
			mustCommit(t, j, Batch{Events: events(600, "x")})
			if err := j.Snapshot(600, 0, nil); err != nil {
				t.Fatal(err)
			}
			tamper(t, j, tt.damage)
			good, got := 0, error(nil)
			for _, err := range j.Events(tt.after) {
				if got != nil {
					t.Error("the iteration goes on after an error")
				}
				if got = err; err == nil {
					good++
				}
			}
			if good != tt.good {
				t.Errorf("%d events, want %d", good, tt.good)
			}
			if tt.want == "" {
				if got != nil {
					t.Error(got)
				}
				return
			}
			if !errors.Is(got, ErrDamaged) || !strings.Contains(got.Error(), tt.want) {
				t.Errorf("error %v, want %q", got, tt.want)
			}
		})
	}
}

func TestEventsCanBeLeftEarly(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	mustCommit(t, j, Batch{Events: events(2*readers*pageSize, "x")})
	for range 2 * readers { // a connection that is not returned would be missing
		for range j.Events(0) {
			break
		}
		for range j.Decisions(0) {
			break
		}
	}
}

func TestSnapshots(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	load := func(wantSeq int64, wantBody string, wantDamaged bool) {
		t.Helper()
		s, err := j.Load()
		if err != nil || s.Seq != wantSeq || string(s.Body) != wantBody || (s.Damaged != nil) != wantDamaged {
			t.Errorf("load: %d %q %v %v, want %d %q", s.Seq, s.Body, s.Damaged, err, wantSeq, wantBody)
		}
	}
	take := func(seq int64, body string) {
		t.Helper()
		if err := j.Snapshot(seq, seq, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	load(0, "", false)
	if err := j.Snapshot(1, 0, nil); err == nil {
		t.Error("a snapshot of the future")
	}
	mustCommit(t, j, Batch{Events: events(50, "x")})
	take(10, "ten")
	take(20, "twenty")
	take(30, "thirty")
	load(30, "thirty", false)
	if seqs, err := j.snapshotSeqs(); fmt.Sprint(seqs) != "[30 20]" || err != nil {
		t.Errorf("kept %v, %v", seqs, err)
	}

	tamper(t, j, "UPDATE snapshots SET body = CAST('thirtx' AS BLOB) WHERE seq = 30")
	load(20, "twenty", true)
	if err := j.Check(); !errors.Is(err, ErrDamaged) {
		t.Errorf("check: %v", err)
	}
	if n, err := j.Prune(0, 100); n != 0 || err != nil {
		t.Errorf("pruned %d events that the fallback may need (%v)", n, err)
	}
	take(30, "thirty again")
	load(30, "thirty again", false)

	tamper(t, j, "UPDATE snapshots SET at = 5")
	load(0, "", true) // all events are there: replay from the start
	tamper(t, j, "DELETE FROM events WHERE seq < 15")
	if _, err := j.Load(); !errors.Is(err, ErrDamaged) {
		t.Errorf("nothing to start from: %v", err)
	}
}

func TestPrune(t *testing.T) {
	for _, tt := range []struct {
		name      string
		snapshots []int64
		keep      int
		olderThan int64
		want      int
	}{
		{"no snapshot", nil, 0, 1000, 0},
		{"one snapshot", []int64{50}, 0, 1000, 0},
		{"before the older one", []int64{50, 80}, 0, 1000, 50},
		{"keep more", []int64{50, 80}, 70, 1000, 30},
		{"keep all", []int64{50, 80}, 200, 1000, 0},
		{"young", []int64{50, 80}, 0, 20, 20}, // event n is from n-1
		{"none that old", []int64{50, 80}, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := mustOpen(t, t.TempDir())
			b := Batch{Events: events(100, "x")}
			for seq := int64(1); seq <= 100; seq++ {
				b.Decisions = append(b.Decisions, Decision{Seq: seq})
			}
			mustCommit(t, j, b)
			for _, seq := range tt.snapshots {
				if err := j.Snapshot(seq, 0, nil); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range []int{tt.want, 0} {
				if got, err := j.Prune(tt.keep, tt.olderThan); got != want || err != nil {
					t.Errorf("pruned %d (%v), want %d", got, err, want)
				}
			}
			first, last, err := j.Bounds()
			if first != int64(tt.want)+1 || last != 100 || err != nil {
				t.Errorf("left %d to %d, %v", first, last, err)
			}
			for d, err := range j.Decisions(0) {
				if err != nil || d.Seq != first {
					t.Errorf("oldest decision is of event %d, want %d (%v)", d.Seq, first, err)
				}
				break
			}
			if err := j.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPruneIsBounded(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	const n = PruneLimit + 100
	mustCommit(t, j, Batch{Events: events(n, "x")})
	for _, seq := range []int64{n - 1, n} {
		if err := j.Snapshot(seq, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{PruneLimit, 99, 0} {
		if got, err := j.Prune(0, n); got != want || err != nil {
			t.Errorf("pruned %d (%v), want %d", got, err, want)
		}
	}
}
