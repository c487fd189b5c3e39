package reconcile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/record"
)

// lossAccepted reports whether the loss of a part of the journal was accepted and the
// lost tasks are not restored yet.
func (r *Reconciler) lossAccepted() (bool, error) {
	_, err := r.journal.Meta(journal.AcceptLossKey)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// AcceptLostRecords restores the tasks of an accepted loss that have records by
// journaling them again. It may be repeated, and must run before new tasks are submitted.
// Nothing is launched meanwhile.
func (r *Reconciler) AcceptLostRecords() error {
	if accepted, err := r.lossAccepted(); err != nil || !accepted {
		return err
	}
	changes := []*loop.Change{loop.Fact(model.EngineChanged{At: r.clock.Now(), Reason: "what the journal has lost is being taken in"})}
	ended, err := r.lostEnds()
	if err != nil {
		return err
	}
	waiting, err := r.lostSubmissions()
	if err != nil {
		return err
	}
	return r.applyAll(append(append(changes, ended...), waiting...))
}

// acceptLoss restores the other tasks of an accepted loss from their containers, and ends
// the acceptance. No container is touched.
func (r *Reconciler) acceptLoss(found []orphan) error {
	if accepted, err := r.lossAccepted(); err != nil || !accepted {
		return err
	}
	taken, left := r.adoptOrphans(found)
	if err := r.applyAll(taken); err != nil {
		return err
	}
	if err := r.ignoreContainers(left); err != nil {
		return err
	}
	return r.journal.DropMeta(journal.AcceptLossKey)
}

func (r *Reconciler) applyAll(changes []*loop.Change) error {
	kept, err := r.loop.Apply(changes)
	if err == nil && len(kept) > 0 {
		err = fmt.Errorf("%d changes that make good what the journal has lost: %w", len(kept), journal.ErrFull)
	}
	return err
}

// lostEnds returns the ends of the tasks that are unfinished in the state and
// finished in their records.
func (r *Reconciler) lostEnds() (changes []*loop.Change, err error) {
	for _, t := range r.loop.State().Tasks() {
		row, err := r.journal.Task(int64(t.ID))
		if errors.Is(err, journal.ErrNotFound) {
			r.log.Error().Int64("task", int64(t.ID)).Msg("the record of a task was lost; it cannot be launched again")
			continue
		}
		if err != nil {
			return nil, err
		}
		if !row.Finished {
			continue
		}
		rec, err := record.Decode(row)
		if err != nil {
			return nil, err
		}
		changes = append(changes, loop.Fact(model.EndRecovered{At: r.clock.Now(), Task: rec.Task}))
	}
	return changes, nil
}

// lostSubmissions returns the submissions of the tasks that the state does not know and
// that have unfinished records, in order of number. Their containers, if any run, are
// adopted afterwards.
func (r *Reconciler) lostSubmissions() (changes []*loop.Change, err error) {
	rows, err := r.journal.Tasks(journal.Filter{Unfinished: true})
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows)
	for _, row := range rows {
		if model.TaskID(row.ID) <= r.loop.State().LastID() {
			continue
		}
		rec, err := record.Decode(row)
		if err != nil {
			return nil, err
		}
		now, t := r.clock.Now(), rec.Task
		changes = append(changes, loop.Fact(model.TaskSubmitted{At: now, Request: t.Request}))
		changes = append(changes, loop.Fact(model.Estimated{At: now, Task: t.ID, Estimate: lostEstimate(rec), Expected: t.Expected}))
		r.log.Warn().Int64("task", int64(t.ID)).Msg("a task that the journal had lost is submitted again, from its record")
	}
	return changes, nil
}

// lostEstimate returns an estimate for a task whose Estimated event was lost. It takes
// the estimate in the record, else the declared memory, else a whole GPU.
func lostEstimate(rec *record.Record) model.Estimate {
	switch {
	case rec.Task.Estimate.Memory > 0:
		return rec.Task.Estimate
	case rec.Submit.Mem > 0:
		return model.Estimate{Memory: units.Bytes(rec.Submit.Mem)}
	}
	return model.Estimate{WholeGPU: true}
}

// adoptOrphans makes tasks from containers that the journal does not know. These tasks
// continue, and end like others. adoptOrphans does not adopt a container whose labels are
// incomplete, nor a container whose task number belongs to another task or to a finished one.
// left contains the IDs of the containers that are not adopted.
func (r *Reconciler) adoptOrphans(found []orphan) (changes []*loop.Change, left []string) {
	for _, s := range found {
		rec, ev, err := r.orphanRecord(s)
		if err != nil {
			r.log.Error().Err(err).Str("container", s.Name).Msg("a container that the journal does not know cannot be taken in; it is left alone")
			left = append(left, s.ID)
			continue
		}
		r.log.Warn().Int64("task", int64(s.task)).Int("attempt", s.attempt).Str("container", s.Name).Msg("a container that the journal does not know is taken in as a task")
		changes = append(changes, &loop.Change{Keep: true, Events: func(units.Instant) ([]model.Event, []*record.Record, error) {
			return []model.Event{ev}, []*record.Record{rec}, nil
		}})
	}
	return changes, left
}

// leftAloneKey is the key in the journal's meta for the containers that were not adopted when a
// loss was accepted. The daemon starts although these containers exist.
const leftAloneKey = "left-alone"

func (r *Reconciler) ignoredContainers() (ids []string, err error) {
	b, err := r.journal.Meta(leftAloneKey)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &ids)
	}
	return ids, err
}

func (r *Reconciler) ignoreContainers(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	before, err := r.ignoredContainers()
	if err != nil {
		return err
	}
	b, err := json.Marshal(append(before, ids...))
	if err != nil {
		return err
	}
	return r.journal.SetMeta(leftAloneKey, b)
}

// orphanRecord makes an orphan's record and event from its labels, and from the known
// data of its task.
func (r *Reconciler) orphanRecord(s orphan) (*record.Record, model.OrphanAdopted, error) {
	ev := model.OrphanAdopted{At: r.clock.Now(), Attempt: s.attempt}
	grants, err := label.ParseGrants(s.Labels)
	if err != nil {
		return nil, ev, err
	}
	ev.Grants = grants
	if text := s.Labels[label.Host]; text != "" {
		if err := json.Unmarshal([]byte(text), &ev.Host); err != nil {
			return nil, ev, fmt.Errorf("its label %s, %q, does not say what was booked", label.Host, text)
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, s.Labels[label.Launched]); err == nil {
		ev.Launched = units.InstantOf(at)
	}
	nonce := s.Labels[label.Nonce]
	rec, err := r.find(s.task)
	switch {
	case err == nil && (rec.Nonce == "" || rec.Nonce == nonce):
		if rec.Task.Phase.Finished() {
			return nil, ev, fmt.Errorf("task %d is finished, of %d attempts", s.task, len(rec.Task.Attempts))
		}
		ev.Request = rec.Task.Request
		return rec, ev, nil
	case err == nil:
		return nil, ev, fmt.Errorf("task %d is known, and is another one", s.task)
	case !errors.Is(err, journal.ErrNotFound):
		return nil, ev, err
	}
	uid, err1 := strconv.Atoi(s.Labels[label.UID])
	gid, err2 := strconv.Atoi(s.Labels[label.GID])
	if err1 != nil || err2 != nil {
		return nil, ev, errors.New("its labels do not say whose it is")
	}
	ev.Request = model.Request{ID: s.task, User: s.Labels[label.User], GPUs: len(grants), NoGPU: len(grants) == 0}
	rec = &record.Record{
		Submit: api.Submit{Image: s.Labels[label.Image], Name: s.Labels[label.Name], GPUs: len(grants), NoGPU: len(grants) == 0},
		Name:   s.Labels[label.Name], Nonce: nonce, User: s.Labels[label.User], UID: uid, GID: gid,
		Detail: "taken in: the journal had lost this task, its container was found",
		Task:   model.Task{Request: ev.Request, Phase: model.Held, Submitted: cmp.Or(ev.Launched, ev.At)},
	}
	return rec, ev, nil
}
