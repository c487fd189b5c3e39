package runner

import (
	"errors"
	"fmt"
	"time"

	"carma/mapper"
	"carma/runner/journal"
)

// Verification is what [Verify] found in a journal.
type Verification struct {
	Events int64 `json:"events"`
	// First is the number of the first event checked: 1, or the one after
	// the oldest snapshot where older events were pruned.
	First      int64         `json:"first"`
	Span       time.Duration `json:"span"`
	Submitted  int           `json:"submitted"`
	Launches   int           `json:"launches"`
	Succeeded  int           `json:"succeeded"`
	Failed     int           `json:"failed"`
	Cancelled  int           `json:"cancelled"`
	OOMs       int           `json:"ooms"`
	Relaunches int           `json:"relaunches"`
	// Unfinished tasks at the end.
	Unfinished int `json:"unfinished"`
	// Compared is how many recorded decisions were equal to the replayed ones.
	Compared int `json:"compared"`
	// MostReserved is the highest share of one GPU's memory that was reserved.
	MostReserved float64 `json:"most_reserved"`
	MostTasks    int     `json:"most_tasks"` // on one GPU
	// Faults are broken invariants, none in a sound journal.
	Faults []string `json:"faults,omitempty"`
}

// maxFaults bounds the report of a journal that is badly broken.
const maxFaults = 20

// Verify replays the journal in dir through the mapper, beside a running
// daemon or without one, and checks after every event that no GPU is
// over-committed, no attempt starts while another of its task runs, no task
// is lost, and that the decisions are those that were recorded, by code and
// figures: how an older version worded a reason does not count.
func Verify(dir string) (Verification, error) {
	j, err := journal.OpenReadOnly(dir)
	if err != nil {
		return Verification{}, err
	}
	defer j.Close()
	v := verifier{live: map[mapper.TaskID]int{}, recorded: map[int64][]journal.Decision{}}
	err = j.View(v.read) // one state of it, however much is written meanwhile
	if _, bad := journal.CheckFolder(dir); bad != nil && (err == nil || errors.Is(err, journal.ErrDamaged)) {
		v.damaged(bad)
		err = nil
	}
	return v.Verification, err
}

// damaged adds what is wrong with the journal itself.
func (v *verifier) damaged(err error) {
	text := err.Error()
	if r, ok := errors.AsType[*journal.Refusal](err); ok {
		text = r.What + "; to go on: " + r.Mend
	}
	v.Faults = append([]string{"the journal is not what was written: " + text}, v.Faults...)
}

// read goes through the whole journal.
func (v *verifier) read(j *journal.Reader) error {
	if err := v.start(j); err != nil {
		return err
	}
	for d, err := range j.Decisions(v.First - 1) {
		if err != nil {
			return err
		}
		v.recorded[d.Seq] = append(v.recorded[d.Seq], d)
	}
	var began mapper.Instant
	for ev, err := range j.Events(v.First - 1) {
		if err != nil {
			return err
		}
		e, err := mapper.DecodeEvent(ev.Kind, ev.Body)
		if err != nil {
			return fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		if began == 0 {
			began = mapper.EventTime(e)
		}
		v.apply(ev.Seq, e)
	}
	v.Span = max(0, v.state.Now().Sub(began))
	v.Unfinished = v.state.Unfinished()
	if ends := v.Succeeded + v.Failed + v.Cancelled + v.Unfinished; v.First == 1 && ends != v.Submitted {
		v.fault(0, fmt.Errorf("%d tasks were submitted, %d are accounted for", v.Submitted, ends))
	}
	return nil
}

type verifier struct {
	Verification
	state    *mapper.State
	live     map[mapper.TaskID]int // attempt that holds GPUs
	recorded map[int64][]journal.Decision
}

// start takes the oldest state there is.
func (v *verifier) start(j *journal.Reader) error {
	first, _, err := j.Bounds()
	if err != nil {
		return err
	}
	v.state, v.First = mapper.New(mapper.DefaultOptions()), 1
	if first <= 1 {
		return nil
	}
	snap, err := j.Load()
	if err != nil {
		return err
	}
	v.First = snap.Seq + 1
	return v.state.UnmarshalJSON(snap.Body)
}

func (v *verifier) apply(seq int64, ev mapper.Event) {
	v.Events++
	switch ev := ev.(type) {
	case mapper.TaskSubmitted:
		v.Submitted++
	case mapper.Exited:
		if v.live[ev.Task] == ev.Attempt {
			delete(v.live, ev.Task)
			if ev.Class == mapper.ExitGPUOOM {
				v.OOMs++
			}
		}
	}
	decisions := v.state.Step(ev)
	for n, d := range decisions {
		v.compare(seq, n, d)
		switch d := d.(type) {
		case mapper.Launch:
			v.Launches++
			if d.Attempt > 1 {
				v.Relaunches++
			}
			if n, ok := v.live[d.Task]; ok {
				v.fault(seq, fmt.Errorf("task %d: attempt %d is launched while attempt %d runs", d.Task, d.Attempt, n))
			}
			v.live[d.Task] = d.Attempt
			if err := v.state.AuditLaunch(d); err != nil {
				v.fault(seq, err)
			}
		case mapper.Finish:
			v.finished(d.Task.Phase)
		}
	}
	if len(decisions) > 0 {
		if err := v.state.Audit(); err != nil {
			v.fault(seq, err)
		}
		for _, g := range v.state.GPUs() {
			v.MostReserved = max(v.MostReserved, float64(g.Reserved)/float64(g.Capacity))
			v.MostTasks = max(v.MostTasks, len(g.Residents))
		}
	}
}

func (v *verifier) finished(p mapper.Phase) {
	switch p {
	case mapper.Succeeded:
		v.Succeeded++
	case mapper.Failed:
		v.Failed++
	default:
		v.Cancelled++
	}
}

// compare holds a decision against the recorded one. The last ones before a
// crash were not recorded; there is nothing to compare then.
func (v *verifier) compare(seq int64, n int, d mapper.Decision) {
	for _, rec := range v.recorded[seq] {
		if rec.N != n {
			continue
		}
		was, err := mapper.DecodeDecision(rec.Kind, rec.Body)
		switch {
		case err != nil:
			v.fault(seq, fmt.Errorf("decision %d cannot be read: %w", n, err))
		case !mapper.SameDecision(was, d):
			kind, body, _ := mapper.EncodeDecision(d)
			v.fault(seq, fmt.Errorf("decision %d was %s %s, replayed it is %s %s", n, rec.Kind, rec.Body, kind, body))
		default:
			v.Compared++
		}
	}
}

func (v *verifier) fault(seq int64, err error) {
	if len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, fmt.Sprintf("event %d: %v", seq, err))
	}
}
