package verify

import (
	"errors"
	"fmt"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/journal"
)

// Result is the result of [Journal].
type Result struct {
	Events int64 `json:"events"`
	// First is the number of the first event checked. It is 1, or the event after the
	// snapshot if older events were pruned.
	First      int64         `json:"first"`
	Span       time.Duration `json:"span"`
	Submitted  int           `json:"submitted"`
	Launches   int           `json:"launches"`
	Succeeded  int           `json:"succeeded"`
	Failed     int           `json:"failed"`
	Cancelled  int           `json:"cancelled"`
	OOMs       int           `json:"ooms"`
	Relaunches int           `json:"relaunches"`
	// Suspended and Resumed count the suspensions and resumes of tasks. SuspendedTime is the total
	// time between them.
	Suspended     int           `json:"suspended"`
	Resumed       int           `json:"resumed"`
	SuspendedTime time.Duration `json:"away"`
	// Unfinished tasks at the end.
	Unfinished int `json:"unfinished"`
	// Compared is the number of recorded decisions that this program makes identically.
	Compared int `json:"compared"`
	// Differs is the first event on which this program decides differently from another
	// program that wrote the journal, or empty if there is none. If it is set, the recorded
	// decisions were checked.
	Differs string `json:"differs,omitempty"`
	// MostReserved is the highest share of one GPU's memory that was reserved.
	MostReserved float64 `json:"most_reserved"`
	MostTasks    int     `json:"most_tasks"` // on one GPU
	// Faults are violated invariants. A sound journal has none.
	Faults []string `json:"faults,omitempty"`
}

// maxFaults is the largest number of faults in a report.
const maxFaults = 20

// Journal replays the journal in dir through the mapper; a daemon may be running. It checks
// after every event that no GPU is over-committed, no attempt starts while another of its
// task runs and no task is lost. program is this program's version. Decisions that this
// version has recorded must be derived again, equal by code and figures. Another version's
// decisions are kept, and are checked as they are.
func Journal(dir, program string) (Result, error) {
	j, err := journal.OpenReadOnly(dir)
	if err != nil {
		return Result{}, err
	}
	defer j.Close()
	v := newVerifier(program)
	err = j.View(func(j *journal.Reader) error { // the view stays the same, however much is written meanwhile
		if err := CheckAll(j); errors.Is(err, journal.ErrNewer) {
			return err
		}
		err := v.read(j)
		if other := v.other; err == nil && other != nil {
			v = newVerifier(program)
			v.follow, v.Differs = true, other.String()
			err = v.read(j)
		}
		return err
	})
	if _, bad := journal.CheckFolder(dir); bad != nil && (err == nil || errors.Is(err, journal.ErrDamaged)) {
		v.damaged(bad)
		err = nil
	}
	return v.Result, err
}

// damaged adds a fault of the journal itself.
func (v *verifier) damaged(err error) {
	text := err.Error()
	if r, ok := errors.AsType[*journal.Refusal](err); ok {
		text = r.What + "; to go on: " + r.Fix
	}
	v.Faults = append([]string{"the journal is not what was written: " + text}, v.Faults...)
}

type verifier struct {
	Result
	program string // this one
	by      string // the version that decided, or "" for an older one
	follow  bool   // stored decisions are applied, not derived
	other   *Difference
	state   *mapper.State
	live    map[model.TaskID]int           // the placed attempt
	left    map[model.TaskID]units.Instant // when each suspended task left its GPUs
}

func newVerifier(program string) *verifier {
	return &verifier{program: program, live: map[model.TaskID]int{}, left: map[model.TaskID]units.Instant{}}
}

// read checks the whole journal, or the events up to the first one on which another
// program decided differently.
func (v *verifier) read(j *journal.Reader) error {
	if err := v.start(j); err != nil {
		return err
	}
	last, err := j.Decided()
	if err != nil {
		return err
	}
	var began units.Instant
	for p, err := range History(j, v.First-1) {
		if err != nil {
			return err
		}
		if began == 0 {
			began = model.EventTime(p.Event)
		}
		if c, ok := p.Event.(model.Configured); ok {
			v.by = c.Program
		}
		if v.apply(p, p.Seq <= last); v.other != nil {
			return nil
		}
	}
	v.Span = max(0, v.state.Now().Sub(began))
	v.Unfinished = v.state.Unfinished()
	if ends := v.Succeeded + v.Failed + v.Cancelled + v.Unfinished; v.First == 1 && ends != v.Submitted {
		v.fault(0, fmt.Errorf("%d tasks were submitted, %d are accounted for", v.Submitted, ends))
	}
	return nil
}

// start loads the oldest state that the journal has.
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

// step applies an event and returns the decisions on it. The last events before a crash
// have no stored decisions, because none was carried out.
func (v *verifier) step(p Step, stored bool) []model.Decision {
	if v.follow && stored {
		v.state.Apply(p.Event, p.Decided)
		return p.Decided
	}
	derived := v.state.Step(p.Event)
	if !stored {
		return derived
	}
	d := Compare(p, derived, v.state.DecisionFormat())
	switch {
	case d == nil:
		v.Compared += len(p.Decided)
	case v.by == v.program && v.program != "":
		v.fault(p.Seq, errors.New(d.String()))
	default:
		v.other = d
	}
	return derived
}

func (v *verifier) apply(p Step, stored bool) {
	v.Events++
	switch ev := p.Event.(type) {
	case model.TaskSubmitted:
		v.Submitted++
	case model.EndRecovered:
		delete(v.live, ev.Task.ID)
	case model.OrphanAdopted:
		if _, known := v.state.Task(ev.ID); !known {
			v.Submitted++
		}
		v.live[ev.ID] = max(v.live[ev.ID], ev.Attempt)
	case model.Exited:
		if v.live[ev.Task] == ev.Attempt {
			delete(v.live, ev.Task)
			if ev.Class == model.ExitGPUOOM {
				v.OOMs++
			}
		}
	}
	decisions := v.step(p, stored)
	v.moved(p.Event)
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			v.launched(p.Seq, d)
		case model.Finish:
			v.finished(d.Task.Phase)
		}
	}
	if len(decisions) > 0 {
		if err := v.state.Audit(); err != nil {
			v.fault(p.Seq, err)
		}
		for _, g := range v.state.GPUs() {
			v.MostReserved = max(v.MostReserved, float64(g.Reserved)/float64(g.Capacity))
			v.MostTasks = max(v.MostTasks, len(g.Residents))
		}
	}
}

// moved counts tasks that were suspended or resumed.
func (v *verifier) moved(ev model.Event) {
	id, now := model.About(ev), v.state.Now()
	t, _ := v.state.Task(id)
	switch left, away := v.left[id]; {
	case !away && t != nil && t.Suspension != nil && t.Suspension.Since > 0:
		v.left[id] = t.Suspension.Since
		v.Suspended++
	case away && (t == nil || t.Suspension == nil):
		delete(v.left, id)
		v.SuspendedTime += now.Sub(left)
		if _, back := ev.(model.Resumed); back {
			v.Resumed++
		}
	}
}

func (v *verifier) launched(seq int64, l model.Launch) {
	v.Launches++
	if l.Attempt > 1 {
		v.Relaunches++
	}
	if n, ok := v.live[l.Task]; ok {
		v.fault(seq, fmt.Errorf("task %d: attempt %d is launched while attempt %d runs", l.Task, l.Attempt, n))
	}
	v.live[l.Task] = l.Attempt
	if err := v.state.AuditLaunch(l); err != nil {
		v.fault(seq, err)
	}
}

func (v *verifier) finished(p model.Phase) {
	switch p {
	case model.Succeeded:
		v.Succeeded++
	case model.Failed:
		v.Failed++
	default:
		v.Cancelled++
	}
}

func (v *verifier) fault(seq int64, err error) {
	if len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, fmt.Sprintf("event %d: %v", seq, err))
	}
}
