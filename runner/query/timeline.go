package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"

	"golang.org/x/sync/semaphore"
)

const (
	// timelinePages is the largest number of pages of tasks that a timeline reads.
	timelinePages = 5
	// timelineAge is the wall-clock time for which a timeline is reused for equal requests.
	// timelineMost is the longest interval of a timeline.
	timelineAge  = 5 * time.Second
	timelineMost = 31 * 24 * time.Hour
)

// timelines caches the last requested timelines by their interval.
type timelines struct {
	turn *semaphore.Weighted // one timeline is made at a time
	last map[[2]time.Time]madeTimeline
}

type madeTimeline struct {
	at   time.Time // wall clock
	line api.Timeline
}

// Timeline returns the attempts that ran between two instants of the daemon's time.
func (r *Tasks) Timeline(ctx context.Context, since, until time.Time) (api.Timeline, error) {
	now := r.c.Clock.Time()
	asked := [2]time.Time{since, until}
	if until.IsZero() || until.After(now) {
		until = now
	}
	if since.IsZero() {
		since = until.Add(-24 * time.Hour)
	}
	if since.After(until) || until.Sub(since) > timelineMost {
		return api.Timeline{}, request.Errorf(422, "since must be before until, by at most %d days", int(timelineMost.Hours()/24))
	}
	if who, _ := request.CallerFrom(ctx); who.Subject != nil { // the cache is for callers who may see all tasks
		line, err := r.timeline(ctx, since, until)
		line.Now = now
		return line, err
	}
	t := &r.timelines
	if err := t.turn.Acquire(ctx, 1); err != nil {
		return api.Timeline{}, err
	}
	defer t.turn.Release(1)
	if old, ok := t.last[asked]; ok && time.Since(old.at) < timelineAge {
		return old.line, nil
	}
	line, err := r.timeline(ctx, since, until)
	if err != nil {
		return line, err
	}
	line.Now = now
	maps.DeleteFunc(t.last, func(_ [2]time.Time, old madeTimeline) bool { return time.Since(old.at) >= timelineAge })
	if len(t.last) >= 32 || t.last == nil {
		t.last = map[[2]time.Time]madeTimeline{}
	}
	t.last[asked] = madeTimeline{time.Now(), line}
	return line, nil
}

func (r *Tasks) timeline(ctx context.Context, since, until time.Time) (api.Timeline, error) {
	line := api.Timeline{Since: since, Until: until, Runs: []api.Run{}}
	o := api.ListOptions{All: true, Since: since, Until: until}
	for range timelinePages {
		recs, more, err := r.listed(ctx, o)
		if err != nil {
			return line, err
		}
		recs, next := page(recs, pageLimit(o))
		for _, rec := range recs {
			line.Runs = append(line.Runs, r.runsOf(rec, since, until)...)
		}
		o.Before = cmp.Or(next, more)
		if line.Cut = o.Before > 0; !line.Cut {
			break
		}
	}
	slices.SortStableFunc(line.Runs, func(a, b api.Run) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Task, b.Task))
	})
	return line, nil
}

// runsOf returns the attempts of a task that had GPUs in an interval. The result has no
// data that only some callers may see.
func (r *Tasks) runsOf(rec *record.Record, since, until time.Time) (runs []api.Run) {
	from, to := units.InstantOf(since), units.InstantOf(until)
	for i := range rec.Task.Attempts {
		a := &rec.Task.Attempts[i]
		if a.Launched > to || a.Ended > 0 && a.Ended < from {
			continue
		}
		run := api.Run{
			Task: int64(rec.ID()), Name: rec.Name, User: rec.User, Attempt: a.N, GPUs: []int{}, From: a.Launched.Time(), Until: a.Ended.TimeOrZero(),
			Outcome: string(a.Class), Again: string(a.Reason.Code), Suspended: suspendedFor(&rec.Task, a, r.c.Clock.Now()), Back: a.Back.TimeOrZero(), Peak: int64(a.Peak),
		}
		for _, g := range a.Grants {
			run.GPUs = append(run.GPUs, r.c.GPUs.Ref(g.GPU).Index)
			run.Grant = max(run.Grant, int64(g.Memory))
		}
		if s := rec.Task.Suspension; s != nil && a.Ended == 0 {
			run.Away = s.Since.TimeOrZero()
			if rec.Task.Phase == model.Suspended {
				run.GPUs = run.GPUs[:0]
				for _, g := range s.From {
					run.GPUs = append(run.GPUs, r.c.GPUs.Ref(g.GPU).Index)
				}
			}
		}
		r.addRunIntervals(&run, rec, a)
		runs = append(runs, run)
	}
	return runs
}

// addRunIntervals adds the GPUs of a run between its suspensions, and all GPUs that the
// run ever had.
func (r *Tasks) addRunIntervals(run *api.Run, rec *record.Record, a *model.Attempt) {
	if len(a.Absences) == 0 {
		return
	}
	from := run.From
	for _, absence := range a.Absences {
		stay := api.Stay{From: from, Until: absence.From.Time()}
		for _, g := range absence.GPUs {
			stay.GPUs = append(stay.GPUs, r.c.GPUs.Ref(g).Index)
		}
		run.Stays, from = append(run.Stays, stay), absence.To.Time()
	}
	if end := cmp.Or(run.Away, run.Until); end.IsZero() || from.Before(end) {
		run.Stays = append(run.Stays, api.Stay{GPUs: run.GPUs, From: from, Until: end})
	}
	for _, stay := range run.Stays {
		for _, g := range stay.GPUs {
			if !slices.Contains(run.GPUs, g) {
				run.GPUs = append(slices.Clip(run.GPUs), g)
			}
		}
	}
}
