package runner

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/record"
)

// The reason why a task waits is computed on request, and no event contains it. For the
// task's history, the daemon stores the reasons of the tasks that have waited longest, in
// memory.

const (
	// waitsEvery is the wall-clock time between two recordings. waitsLooked is the number
	// of tasks per recording; for each task the loop looks at all GPUs.
	waitsEvery, waitsLooked = 15 * time.Second, 40
	// waitsEach is the number of reasons kept of a task, the first and the last ones.
	// waitsKept is the number of tasks with reasons.
	waitsEach, waitsKept = 12, 2000
)

// waited holds the reasons for which tasks have waited.
type waited struct {
	mu sync.Mutex
	of map[model.TaskID][]historyLine
}

// recordWaits calls recordWaitReasons every waitsEvery until ctx ends.
func (r *Runner) recordWaits(ctx context.Context) {
	for pause(ctx, waitsEvery) {
		if err := r.recordWaitReasons(ctx); err != nil && ctx.Err() == nil {
			r.Log.Debug().Err(err).Msg("the reasons of waiting tasks could not be noted")
		}
	}
}

// recordWaitReasons stores the reasons with another code than the previous one.
func (r *Runner) recordWaitReasons(ctx context.Context) error {
	recs := r.records.Newest(0, math.MaxInt, func(rec *record.Record) bool {
		return rec.Task.Phase == model.Queued || rec.Task.Phase == model.Recovering
	})
	slices.Reverse(recs)
	var notes []historyLine
	var ids []model.TaskID
	err := r.loop.Look(ctx, func(s *mapper.State) {
		for _, rec := range recs[:min(len(recs), waitsLooked)] {
			why, known := s.Why(rec.ID())
			if !known || why.Position == 0 || why.Binding.Code == "" {
				continue
			}
			note := historyLine{Happened: api.Happened{At: r.Clock.Time(), Kind: "waits", Text: "waits: " + words.Why(why), Reason: string(why.Binding.Code)}}
			why.Binding = record.UnquotedReason(why.Binding)
			note.public = "waits: " + words.Why(why)
			notes, ids = append(notes, note), append(ids, rec.ID())
		}
	})
	for i, id := range ids {
		r.waited.add(id, notes[i])
	}
	return err
}

func (w *waited) add(id model.TaskID, note historyLine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[model.TaskID][]historyLine{}
	}
	have := w.of[id]
	if n := len(have); n > 0 && have[n-1].Reason == note.Reason {
		return
	}
	if have = append(have, note); len(have) > waitsEach {
		have = slices.Delete(have, waitsEach/2, waitsEach/2+1)
	}
	w.of[id] = have
	for len(w.of) > waitsKept {
		oldest := id
		for other := range w.of {
			oldest = min(oldest, other)
		}
		delete(w.of, oldest)
	}
}

func (w *waited) reasons(id model.TaskID) []historyLine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.of[id])
}

// merged adds the reasons to the lines of a history, by time. It returns the number of
// lines before the gap in them.
func (l taskHistory) merged(reasons []historyLine) (all []historyLine, gap int) {
	for i, line := range l.lines {
		for len(reasons) > 0 && reasons[0].At.Before(line.At) {
			all, reasons = append(all, reasons[0]), reasons[1:]
		}
		all = append(all, line)
		if l.left > 0 && i == happenedFirst-1 {
			gap = len(all)
		}
	}
	return append(all, reasons...), gap
}

// pause waits for d, and returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
