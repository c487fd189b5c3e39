package runner

import (
	"context"
	"math"
	"slices"
	"time"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/energy"
	"carma/runner/record"
)

// liveMost is the largest number of unfinished tasks in a picture. Tasks that have or had
// GPUs come first, then pending tasks, oldest first.
const liveMost = 2000

// liveRecords returns the unfinished tasks of a picture, at most most, and the number of
// further ones.
func (r *Runner) liveRecords(most int) (recs []*record.Record, left int) {
	var first, rest []*record.Record
	for _, rec := range r.records.Newest(0, math.MaxInt, func(rec *record.Record) bool { return !rec.Task.Phase.Finished() }) {
		if p := rec.Task.Phase; p.Placed() || p == model.Suspended {
			first = append(first, rec)
		} else {
			rest = append(rest, rec)
		}
	}
	slices.Reverse(rest)
	all := len(first) + len(rest)
	first = first[:min(most, len(first))]
	recs = append(first, rest[:min(most-len(first), len(rest))]...)
	return recs, all - len(recs)
}

// liveTask returns the short form of a task. Times and shares are rounded, so that small
// changes are not sent.
func liveTask(t *api.Task) api.LiveTask {
	v := api.LiveTask{
		ID: t.ID, Name: t.Name, User: t.User, UID: t.UID, Group: t.Group, Phase: t.Phase, GPUCount: t.GPUCount, Need: t.Need, Estimate: t.Estimate.Memory,
		Submitted: t.Submitted, Started: t.Started, Ended: t.Ended, Attempts: len(t.Attempts), Waits: t.Waits, Reason: t.ReasonCode,
	}
	if t.Priority != "normal" {
		v.Priority = t.Priority
	}
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].Ended.IsZero() {
		for _, g := range t.Attempts[n-1].GPUs {
			v.GPUs = append(v.GPUs, g.Index)
		}
	}
	if p := t.Progress; p != nil {
		v.Share = math.Round(p.Share*1000) / 1000
		v.Doubt = v.Share > 0 && p.Doubt != ""
		v.ETA = roundedTime(p.ETA, t.Started)
		if p.Slowdown != nil {
			v.Slowdown = energy.Hundredths(p.Slowdown.Value)
		}
	}
	if t.Suspension != nil {
		v.Away = t.Suspension.Since
	}
	if t.Idle != nil {
		v.Idle = t.Idle.Since
	}
	return v
}

// roundedTime rounds a forecast time: to a minute if it is far from another time, else to
// ten seconds.
func roundedTime(at, from time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	if at.Sub(from) > time.Hour {
		return at.Round(time.Minute)
	}
	return at.Round(10 * time.Second)
}

func (r *Runner) roundedStart(ctx context.Context, id int64) *api.Start {
	start := r.query.ExpectedStart(ctx, model.TaskID(id))
	if start == nil {
		return nil
	}
	now := r.Clock.Time()
	return &api.Start{Earliest: roundedTime(start.Earliest, now), Latest: roundedTime(start.Latest, now)}
}

// forecastStarts forecasts the starts of the first tasks in the queue, in parallel with
// the pictures, because it takes long with many tasks.
func (r *Runner) forecastStarts(ctx context.Context) {
	l := r.picturing
	for ctx.Err() == nil {
		l.mu.Lock()
		first := l.first
		l.mu.Unlock()
		begun, found := time.Now(), map[int64]*api.Start{}
		for _, id := range first {
			if start := r.roundedStart(ctx, id); start != nil && ctx.Err() == nil {
				found[id] = start
			}
		}
		l.mu.Lock()
		l.starts = found
		l.mu.Unlock()
		rest := liveStartsCost * time.Since(begun)
		if len(first) > 0 {
			rest = max(rest, liveStartsAge)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(rest, liveEvery)):
		}
	}
}
