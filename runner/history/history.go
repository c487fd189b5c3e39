package history

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/inventory"
	"carma/runner/journal"
	"carma/runner/record"
	"carma/runner/rights"
	"carma/runner/waitreason"

	"golang.org/x/sync/semaphore"
)

const (
	// happenedMost is the largest number of lines in a task's history; the earliest
	// happenedFirst of them are always kept.
	happenedMost, happenedFirst = 200, 40
	// happenedHead and happenedTail are the numbers of events of all tasks that are read
	// after a task's submission, and up to now (or its end). Reading 100,000, most of them
	// samples of 16 GPUs, took 0.3 s on two busy cores (BenchmarkAbout).
	happenedHead, happenedTail = 20_000, 100_000
	// happenedKept is the number of tasks whose lines are cached, to continue from.
	happenedKept = 64
)

// Config has the parts that a Reader works with.
type Config struct {
	Journal *journal.Journal
	Find    *record.Finder
	Authz   *access.Authorizer
	GPUs    *inventory.GPUs
	Clock   *clock.Clock
	Waited  *waitreason.Recorder // has the reasons that no event contains
	// Why returns why a task that was named waits.
	Why func(context.Context, string) (api.Why, error)
}

// Reader reads the histories of tasks from the journal, and caches the latest requested
// ones. Safe for concurrent use.
type Reader struct {
	c          Config
	turn       *semaphore.Weighted // one history is made at a time
	kept       map[model.TaskID]taskHistory
	head, tail int64 // happenedHead and happenedTail; tests use smaller values
}

// New returns a reader that has read nothing.
func New(c Config) *Reader {
	return &Reader{c: c, turn: semaphore.NewWeighted(1), head: happenedHead, tail: happenedTail}
}

// taskHistory is the history of a task as found in the journal.
type taskHistory struct {
	asked   time.Time // by the wall clock
	seq     int64     // last event read from the journal
	lines   []historyLine
	left    int // lines dropped after the first happenedFirst
	unread  *api.Span
	gone    bool
	started map[int]bool // attempts whose start is in lines
}

// historyLine is a line, with the form that other users may see.
type historyLine struct {
	api.Happened
	public string
}

// Of returns the history of the task that ref names, as the caller may see it.
func (r *Reader) Of(ctx context.Context, ref string) (api.History, error) {
	rec, err := r.c.Find.Find(ref)
	if err != nil {
		return api.History{}, err
	}
	life, err := r.read(ctx, rec)
	if err != nil {
		return api.History{}, err
	}
	out := api.History{Task: int64(rec.ID()), Now: r.c.Clock.Time(), Lines: []api.Happened{}, LeftOut: life.left, Unread: life.unread, Gone: life.gone}
	all := r.c.Authz.May(ctx, rights.Output, rec)
	lines, gap := life.merged(r.c.Waited.Reasons(rec.ID()))
	out.Gap = gap
	for _, l := range lines {
		if !all {
			l.Text = l.public
		}
		out.Lines = append(out.Lines, l.Happened)
	}
	if rec.Task.Phase.Waits() {
		why, err := r.c.Why(ctx, rec.ID().String())
		if err != nil {
			return out, err
		}
		out.Waits = why.Summary
	}
	return out, nil
}

// read continues a task's cached history with the later events in the journal.
func (r *Reader) read(ctx context.Context, rec *record.Record) (now taskHistory, err error) {
	if err := r.turn.Acquire(ctx, 1); err != nil {
		return now, err
	}
	defer r.turn.Release(1)
	life := r.kept[rec.ID()].copied()
	err = r.c.Journal.View(func(j *journal.Reader) error {
		first, decided, last, err := r.unread(j, rec, &life)
		if err != nil {
			return err
		}
		if err := r.readHistory(ctx, j, rec.ID(), first, decided, &life); err != nil {
			return err
		}
		// The last events may still get decisions, so they are read again the next time.
		now = life.copied()
		from := max(first, decided+1)
		if tail := last - r.tail + 1; tail > from {
			if err := now.skip(j, from, tail); err != nil {
				return err
			}
			from = tail
		}
		return r.readAbout(ctx, j, rec.ID(), from, last, &now)
	})
	if err != nil {
		return taskHistory{}, err
	}
	r.keep(rec.ID(), life)
	return now, nil
}

func (l taskHistory) copied() taskHistory {
	started := map[int]bool{}
	maps.Copy(started, l.started)
	l.lines, l.started = slices.Clone(l.lines), started
	return l
}

// keep caches a history to continue from, and drops the least recently requested one.
func (r *Reader) keep(id model.TaskID, life taskHistory) {
	life.asked = time.Now()
	if r.kept == nil {
		r.kept = map[model.TaskID]taskHistory{}
	}
	r.kept[id] = life
	for len(r.kept) > happenedKept {
		oldest := id
		for other, l := range r.kept {
			if l.asked.Before(r.kept[oldest].asked) {
				oldest = other
			}
		}
		delete(r.kept, oldest)
	}
}

// unread returns the range of events that were not read for a task yet: the first event,
// the last event with all decisions stored, and the last event.
func (r *Reader) unread(j *journal.Reader, rec *record.Record, life *taskHistory) (first, decided, last int64, err error) {
	oldest, last, err := j.Bounds()
	if err != nil {
		return 0, 0, 0, err
	}
	if decided, err = j.Decided(); err != nil {
		return 0, 0, 0, err
	}
	if t := &rec.Task; t.Phase.Finished() {
		after, err := j.Since(int64(t.Ended) + 1)
		if err != nil {
			return 0, 0, 0, err
		}
		last = min(last, after-1)
	}
	if first = life.seq + 1; life.seq == 0 {
		if first, err = j.Since(int64(rec.Task.Submitted)); err != nil {
			return 0, 0, 0, err
		}
		life.gone = first == oldest && oldest > 1
	}
	return first, min(decided, last), last, nil
}

// readHistory adds the lines of a range of events. It reads only the first and the last
// events of a long range.
func (r *Reader) readHistory(ctx context.Context, j *journal.Reader, id model.TaskID, first, last int64, life *taskHistory) error {
	if last-first+1 > r.head+r.tail {
		if err := r.readAbout(ctx, j, id, first, first+r.head-1, life); err != nil {
			return err
		}
		tail := last - r.tail + 1
		if err := life.skip(j, first+r.head, tail); err != nil {
			return err
		}
		first = tail
	}
	life.seq = max(life.seq, last)
	return r.readAbout(ctx, j, id, first, last, life)
}

// skip records that the events in [from, to) are not read.
func (l *taskHistory) skip(j *journal.Reader, from, to int64) error {
	begin, err := j.At(from)
	if err != nil {
		return err
	}
	end, err := j.At(to)
	if err != nil {
		return err
	}
	span := api.Span{From: time.Unix(0, begin).UTC(), Until: time.Unix(0, end).UTC()}
	if l.unread != nil && l.unread.From.Before(span.From) {
		span.From = l.unread.From
	}
	l.unread = &span
	return nil
}

// readAbout adds the lines of some events.
func (r *Reader) readAbout(ctx context.Context, j *journal.Reader, id model.TaskID, first, last int64, life *taskHistory) error {
	events, decisions, err := j.About(ctx, int64(id), first, last)
	if err != nil {
		return err
	}
	times := map[int64]units.Instant{}
	type row struct {
		seq int64
		n   int // number of the decision, or -1 for the event
		ev  model.Event
		d   model.Decision
	}
	var rows []row
	for _, e := range events {
		ev, err := model.DecodeEvent(e.Kind, e.Body)
		if err != nil {
			return err
		}
		times[e.Seq] = units.Instant(e.At)
		rows = append(rows, row{seq: e.Seq, n: -1, ev: ev})
	}
	for _, d := range decisions {
		decision, err := model.DecodeDecision(d.Kind, d.Body)
		if err != nil {
			return err
		}
		rows = append(rows, row{seq: d.Seq, n: d.N, d: decision})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.n, b.n)) })
	for _, x := range rows {
		at, known := times[x.seq]
		if !known {
			when, err := j.At(x.seq)
			if err != nil {
				return err
			}
			at = units.Instant(when)
			times[x.seq] = at
		}
		line := r.decisionText(id, x.d)
		if x.ev != nil {
			line = r.eventText(id, x.ev, life.started)
		}
		if line.Text == "" {
			continue
		}
		line.At = at.TimeOrZero()
		line.public = cmp.Or(line.public, line.Text)
		life.add(line)
	}
	return nil
}

// add adds a line, and drops one in the middle if there are too many.
func (l *taskHistory) add(line historyLine) {
	l.lines = append(l.lines, line)
	if len(l.lines) > happenedMost {
		l.lines = slices.Delete(l.lines, happenedFirst, happenedFirst+1)
		l.left++
	}
}

// merged adds the reasons to the lines of a history, by time. It returns the number of
// lines before the gap in them.
func (l taskHistory) merged(reasons []waitreason.Line) (all []historyLine, gap int) {
	for i, line := range l.lines {
		for len(reasons) > 0 && reasons[0].At.Before(line.At) {
			all, reasons = append(all, historyLine{reasons[0].Happened, reasons[0].Public}), reasons[1:]
		}
		all = append(all, line)
		if l.left > 0 && i == happenedFirst-1 {
			gap = len(all)
		}
	}
	for _, line := range reasons {
		all = append(all, historyLine{line.Happened, line.Public})
	}
	return all, gap
}
