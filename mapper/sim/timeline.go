package sim

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

// Timeline is the course of a replay: the activity and memory of the GPUs, the number of
// waiting tasks, and the GPUs of each attempt.
type Timeline struct {
	// Start is the instant of the first submission, End the end of the replay.
	Start, End units.Instant
	GPUs       []GPUTimeline // by machine, then index
	// Queue is the number of tasks that wait for GPUs.
	Queue Curve
	// Spans lists the attempts on each of their GPUs, by launch, then task, then GPU.
	Spans []Span
}

// GPUTimeline is one device over time.
type GPUTimeline struct {
	ID       model.GPUID
	Index    int
	Model    string
	Capacity units.Bytes
	// Reserved is the sum of the grants in the mapper's ledger, Used the memory that the
	// tasks have allocated, both in bytes.
	Reserved, Used Curve
	// SMACT, SMOCC and DRAMA are the present activity, 0 to 1, not the monitor's mean.
	SMACT, SMOCC, DRAMA Curve
	// Power is in watts.
	Power Curve
}

// Span is one attempt on one of its GPUs, up to its end or its suspension.
type Span struct {
	Task    model.TaskID
	Name    string
	GPU     int // in Timeline.GPUs
	Attempt int // from 1
	// Launched is the instant of the allocation there. Started is 0 if the attempt never
	// ran.
	Launched, Started, Ended units.Instant
	Outcome                  Outcome
}

// Outcome is the end of an attempt, as a chart shows it.
type Outcome string

// The outcomes.
const (
	OutcomeOK    Outcome = "ok"
	OutcomeOOM   Outcome = "oom" // out of GPU memory
	OutcomeOther Outcome = "other"
	OutcomeAway  Outcome = "away" // suspended; the attempt continues later
)

// recorder records the timeline of a replay in progress. A nil recorder records nothing.
type recorder struct {
	timeline Timeline
	devices  []*device
	places   map[model.GPUID]int // look-up only
}

func newRecorder(start units.Instant, devices []*device) *recorder {
	r := &recorder{devices: devices, places: map[model.GPUID]int{}}
	r.timeline = Timeline{Start: start, GPUs: make([]GPUTimeline, len(devices))}
	for i, d := range devices {
		r.timeline.GPUs[i] = GPUTimeline{ID: d.ID, Index: d.Index, Model: d.Model, Capacity: d.Memory}
		r.places[d.ID] = i
		d.curves = &r.timeline.GPUs[i]
		d.record(start)
	}
	return r
}

// stepped records the changes of the mapper's state by an event.
func (r *recorder) stepped(now units.Instant, s *mapper.State) {
	if r == nil {
		return
	}
	r.timeline.Queue.set(now, float64(s.QueueLen()))
	for _, d := range r.devices {
		d.curves.Reserved.set(now, float64(s.Reserved(d.ID)))
	}
}

// left records that a run leaves its present GPUs.
func (r *recorder) left(of *run, now units.Instant, outcome Outcome) {
	if r == nil {
		return
	}
	for _, u := range of.uses {
		r.timeline.Spans = append(r.timeline.Spans, Span{
			Task: of.id, Name: of.task.Name, GPU: r.places[u.device.ID], Attempt: of.attempt,
			Launched: of.came, Started: of.ran, Ended: now, Outcome: outcome,
		})
	}
}

func outcomeOf(c model.Class) Outcome {
	switch c {
	case model.ExitOK:
		return OutcomeOK
	case model.ExitGPUOOM:
		return OutcomeOOM
	}
	return OutcomeOther
}

// done returns the timeline of a replay that has ended.
func (r *recorder) done(end units.Instant) *Timeline {
	if r == nil {
		return nil
	}
	r.timeline.End = end
	slices.SortFunc(r.timeline.Spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Launched, b.Launched), cmp.Compare(a.Task, b.Task),
			cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.GPU, b.GPU))
	})
	return &r.timeline
}

// record records the activity and memory of a device from now on.
func (d *device) record(now units.Instant) {
	c := d.curves
	if c == nil {
		return
	}
	c.Used.set(now, float64(d.held))
	c.SMACT.set(now, d.activity.SMACT)
	c.SMOCC.set(now, d.activity.SMOCC)
	c.DRAMA.set(now, d.activity.DRAMA)
	c.Power.set(now, d.watts)
}
