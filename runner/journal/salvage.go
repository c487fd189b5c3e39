package journal

import (
	"database/sql"
	"fmt"
	"math"
)

// salvage is the readable part of a damaged journal.
type salvage struct {
	db     *sql.DB
	known  head // head in the database, or the zero value if it cannot be read
	events []link1
	// cut is the first event after the snapshot with damaged decisions, or 0. The state is
	// loaded from that snapshot.
	cut       int64
	snapshots []int64 // sound ones, ascending
	dropped   []string
}

// link1 is an event's place in the chain. sound is set if the event's sum matches the sum
// stored for the previous event.
type link1 struct {
	seq, at, sum int64
	sound        bool
}

// span is the part of the history that is kept: events first to last. link is the sum of
// the event before first, chain is the sum of last, and at the time of last.
type span struct{ first, last, link, chain, at int64 }

// survey finds the sound parts, without changing anything.
func survey(db *sql.DB) *salvage {
	s := &salvage{db: db}
	s.known, _ = readHead(db)
	s.surveyEvents()
	_ = both(db, "snapshots", "seq", "seq, at, body, sum",
		func(rows *sql.Rows) (stored[Snapshot], int64, error) {
			var r stored[Snapshot]
			err := rows.Scan(&r.row.Seq, &r.row.At, &r.row.Body, &r.sum)
			return r, r.row.Seq, err
		},
		func(r stored[Snapshot]) {
			if sum(r.row.Seq, r.row.At, "", r.row.Body) == r.sum {
				s.snapshots = append(s.snapshots, r.row.Seq)
			} else {
				s.drop("snapshot %d has a wrong checksum", r.row.Seq)
			}
		})
	return s
}

func (s *salvage) drop(format string, args ...any) {
	if len(s.dropped) < 20 {
		s.dropped = append(s.dropped, fmt.Sprintf(format, args...))
	}
}

func (s *salvage) surveyEvents() {
	var before *link1
	_ = both(s.db, "events", "seq", "seq, at, kind, body, sum",
		func(rows *sql.Rows) (stored[Event], int64, error) {
			var r stored[Event]
			err := rows.Scan(&r.row.Seq, &r.row.At, &r.row.Kind, &r.row.Body, &r.sum)
			return r, r.row.Seq, err
		},
		func(r stored[Event]) {
			l := link1{seq: r.row.Seq, at: r.row.At, sum: r.sum}
			switch {
			case before != nil && before.seq == l.seq-1:
				l.sound = link(before.sum, r.row) == r.sum
			case l.seq == 1:
				l.sound = link(0, r.row) == r.sum
			case s.known.base == l.seq-1:
				l.sound = link(s.known.link, r.row) == r.sum
			}
			if !l.sound {
				s.drop("event %d (%s) does not follow on the one before it, or has a wrong checksum", l.seq, r.row.Kind)
			}
			s.events = append(s.events, l)
			before = &l
		})
}

// best returns the sound part that reaches furthest and that the state can be built from.
// Such a part begins at the first event, or has a snapshot.
func (s *salvage) best() span {
	best := span{first: 1}
	for i := 0; i < len(s.events); i++ {
		if !s.events[i].sound {
			continue
		}
		run := span{first: s.events[i].seq}
		switch {
		case i > 0:
			run.link = s.events[i-1].sum
		case run.first > 1:
			run.link = s.known.link
		}
		for ; i < len(s.events) && s.events[i].sound && (run.last == 0 || s.events[i].seq == run.last+1); i++ {
			run.last, run.chain, run.at = s.events[i].seq, s.events[i].sum, s.events[i].at
		}
		i--
		if run.last >= best.last && (run.first == 1 || s.snapshotIn(run.first-1, run.last) > 0) {
			best = run
		}
	}
	// A snapshot may be newer than all sound events.
	if n := len(s.snapshots); n > 0 && s.snapshots[n-1] > best.last {
		at := s.snapshots[n-1]
		best = span{first: at + 1, last: at, at: s.known.at}
		for _, e := range s.events {
			if e.seq == at {
				best.link, best.chain = e.sum, e.sum
			}
		}
	}
	return s.cutBack(best)
}

// snapshotIn returns the newest sound snapshot of the events from first to
// last, or 0.
func (s *salvage) snapshotIn(first, last int64) (found int64) {
	for _, seq := range s.snapshots {
		if seq >= first && seq <= last {
			found = seq
		}
	}
	return found
}

// cutBack ends the span before the first event with damaged decisions: a state built
// without them would be wrong. Decisions before the newest snapshot are not needed for
// the state, and do not count.
func (s *salvage) cutBack(b span) span {
	from := s.snapshotIn(b.first-1, b.last)
	_ = both(s.db, "decisions", "seq", decisionColumns, scanDecision, func(d stored[Decision]) {
		if d.row.sum() != d.sum {
			s.drop("decision %d.%d has a wrong checksum", d.row.Seq, d.row.N)
			if d.row.Seq > from && d.row.Seq <= b.last && (s.cut == 0 || d.row.Seq < s.cut) {
				s.cut = d.row.Seq
			}
		}
	})
	if s.cut == 0 {
		return b
	}
	b.last, b.chain = s.cut-1, b.link
	for _, e := range s.events {
		if e.seq == b.last {
			b.chain, b.at = e.sum, e.at
		}
	}
	return b
}

const decisionColumns = "seq, n, kind, body, sum"

func scanDecision(rows *sql.Rows) (stored[Decision], int64, error) {
	var d stored[Decision]
	err := rows.Scan(&d.row.Seq, &d.row.N, &d.row.Kind, &d.row.Body, &d.sum)
	return d, d.row.Seq, err
}

// both reads a table in ascending order until a row cannot be read, and then the rest
// from the other end. do gets the rows in ascending order of their keys.
func both[T any](db *sql.DB, table, key, columns string, scan func(*sql.Rows) (T, int64, error), do func(T)) error {
	up := int64(math.MinInt64)
	err := each(db, "SELECT "+columns+" FROM "+table+" ORDER BY "+key, scan, func(row T, at int64) bool {
		do(row)
		up = at
		return true
	})
	if err == nil {
		return nil
	}
	var rest []T
	_ = each(db, "SELECT "+columns+" FROM "+table+" ORDER BY "+key+" DESC", scan, func(row T, at int64) bool {
		if at <= up {
			return false
		}
		rest = append(rest, row)
		return true
	})
	for i := len(rest) - 1; i >= 0; i-- {
		do(rest[i])
	}
	return err
}

func each[T any](db *sql.DB, query string, scan func(*sql.Rows) (T, int64, error), do func(T, int64) bool) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, key, err := scan(rows)
		if err != nil {
			return err
		}
		if !do(row, key) {
			return nil
		}
	}
	return rows.Err()
}
