package waitreason

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
	"carma/runner/clock"
	"carma/runner/record"

	"github.com/rs/zerolog"
)

const (
	// waitsEvery is the wall-clock time between two recordings. waitsLooked is the number
	// of tasks per recording; for each task the loop looks at all GPUs.
	waitsEvery, waitsLooked = 15 * time.Second, 40
	// waitsEach is the number of reasons kept of a task, the first and the last ones.
	// waitsKept is the number of tasks with reasons.
	waitsEach, waitsKept = 12, 2000
)

// Line is a line of a task's history. Public is the text that other users may see.
type Line struct {
	api.Happened
	Public string
}

// Recorder holds the reasons for which tasks have waited. Safe for concurrent use.
type Recorder struct {
	records *record.Store
	clock   *clock.Clock
	look    func(context.Context, func(*mapper.State)) error
	log     zerolog.Logger

	mu sync.Mutex
	of map[model.TaskID][]Line
}

// NewRecorder returns a recorder of the reasons of recorded tasks. look calls a func that may
// read the state.
func NewRecorder(records *record.Store, clock *clock.Clock, look func(context.Context, func(*mapper.State)) error, log zerolog.Logger) *Recorder {
	return &Recorder{records: records, clock: clock, look: look, log: log}
}

// Run calls [Recorder.Record] every waitsEvery until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	for pause(ctx, waitsEvery) {
		if err := r.Record(ctx); err != nil && ctx.Err() == nil {
			r.log.Debug().Err(err).Msg("the reasons of waiting tasks could not be noted")
		}
	}
}

// Record stores the reasons with another code than the previous one.
func (r *Recorder) Record(ctx context.Context) error {
	recs := r.records.Newest(0, math.MaxInt, func(rec *record.Record) bool {
		return rec.Task.Phase == model.Queued || rec.Task.Phase == model.Recovering
	})
	slices.Reverse(recs)
	var lines []Line
	var ids []model.TaskID
	err := r.look(ctx, func(s *mapper.State) {
		for _, rec := range recs[:min(len(recs), waitsLooked)] {
			why, known := s.Why(rec.ID())
			if !known || why.Position == 0 || why.Binding.Code == "" {
				continue
			}
			note := Line{Happened: api.Happened{At: r.clock.Time(), Kind: "waits", Text: "waits: " + words.Why(why), Reason: string(why.Binding.Code)}}
			why.Binding = record.UnquotedReason(why.Binding)
			note.Public = "waits: " + words.Why(why)
			lines, ids = append(lines, note), append(ids, rec.ID())
		}
	})
	for i, id := range ids {
		r.add(id, lines[i])
	}
	return err
}

func (r *Recorder) add(id model.TaskID, note Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[model.TaskID][]Line{}
	}
	have := r.of[id]
	if n := len(have); n > 0 && have[n-1].Reason == note.Reason {
		return
	}
	if have = append(have, note); len(have) > waitsEach {
		have = slices.Delete(have, waitsEach/2, waitsEach/2+1)
	}
	r.of[id] = have
	for len(r.of) > waitsKept {
		oldest := id
		for other := range r.of {
			oldest = min(oldest, other)
		}
		delete(r.of, oldest)
	}
}

// Reasons returns the reasons that are stored of a task, oldest first.
func (r *Recorder) Reasons(id model.TaskID) []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.of[id])
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
