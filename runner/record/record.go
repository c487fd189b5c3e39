package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carma/estimator/servers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/energy"
	"carma/runner/journal"
	"carma/runner/monitor"
	"carma/runner/progress"
)

// WithEnd returns the record with the end of an attempt, if something was observed.
func (r *Record) WithEnd(attempt int, end *AttemptEnd) *Record {
	if end == nil {
		return r
	}
	n := *r
	n.Ends = maps.Clone(r.Ends)
	if n.Ends == nil {
		n.Ends = map[int]*AttemptEnd{}
	}
	n.Ends[attempt] = end
	return &n
}

// ViewEnd adds the observations about an attempt's end to its view.
func (r *Record) ViewEnd(v *api.Attempt) {
	end := r.Ends[v.N]
	if end == nil {
		return
	}
	v.Remark = end.Remark
	for _, w := range end.Witnesses {
		v.Witnesses = append(v.Witnesses, api.Witness{Source: string(w.Source), Says: w.Says, Strength: w.Strength, Rule: w.Rule, Text: w.Text})
	}
}

// WithEnergy returns the record with the joules of an attempt, if there are any.
func (r *Record) WithEnergy(attempt int, joules float64) *Record {
	if joules <= 0 {
		return r
	}
	n := *r
	n.Energy = maps.Clone(r.Energy)
	if n.Energy == nil {
		n.Energy = map[int]float64{}
	}
	n.Energy[attempt] = energy.Hundredths(joules)
	return &n
}

// WithTask returns the record with a new state of its task.
func (r *Record) WithTask(t model.Task) *Record {
	c := *r
	t.Attempts = append([]model.Attempt(nil), t.Attempts...)
	if t.Suspension != nil {
		suspension := *t.Suspension // the state keeps changing its own copy
		t.Suspension = &suspension
	}
	c.Task = t
	return &c
}

// WithJobOver returns the record of a task that its Job no longer needs.
func (r *Record) WithJobOver(why string) *Record {
	c := *r
	job := *r.Job
	job.Over = why
	c.Job = &job
	return &c
}

// WithCurve returns the record with the curve of an attempt, if there is one.
func (r *Record) WithCurve(attempt int, c *monitor.Curve) *Record {
	if c == nil {
		return r
	}
	n := *r
	n.Curves = maps.Clone(r.Curves)
	if n.Curves == nil {
		n.Curves = map[int]*monitor.Curve{}
	}
	n.Curves[attempt] = c
	return &n
}

// WithUntouched returns the record with an attempt that never touched its GPUs, if that
// was measured.
func (r *Record) WithUntouched(attempt int, measured bool) *Record {
	if !measured {
		return r
	}
	n := *r
	n.Untouched = append(slices.Clone(r.Untouched), attempt)
	return &n
}

// Measured reports whether the memory that an attempt used is known, even if it used
// none.
func (r *Record) Measured(a *model.Attempt) bool {
	return a.Peak > 0 || slices.Contains(r.Untouched, a.N)
}

// ContainerUser returns the user and group of the container. ok is false for a user that
// the image gives by name, because only the image's own files have its number.
func (r *Record) ContainerUser() (uid, gid int, ok bool) {
	if r.UID != 0 {
		return r.UID, r.GID, true
	}
	user, group, _ := strings.Cut(cmp.Or(r.Submit.User, r.ImageUser), ":")
	if user == "" || user == "root" {
		return 0, 0, true
	}
	uid, err := strconv.Atoi(user)
	if err != nil || uid < 0 {
		return 0, 0, false
	}
	gid, err = strconv.Atoi(group)
	if err != nil || gid < 0 {
		gid = 0
	}
	return uid, gid, true
}

// WithParams returns the record with numbers of parameters, if there are any.
func (r *Record) WithParams(p *progress.Parameters) *Record {
	if p == nil {
		return r
	}
	c := *r
	c.Params = p
	return &c
}

// Record is everything known about a task: the request, its submitter and the
// mapper's state of it. Records are never changed, only replaced.
type Record struct {
	Submit api.Submit `json:"submit"`
	Name   string     `json:"name"`
	// Nonce is random, so that a container of another task with the same number has
	// another nonce. It is empty for tasks that were submitted to a program without
	// nonces.
	Nonce string `json:"nonce,omitempty"`
	// Group is the name of the group that the task was submitted with, and GroupID the
	// number of the group's first task. They are empty and 0 if the task was submitted
	// alone.
	Group   string       `json:"group,omitempty"`
	GroupID model.TaskID `json:"group_id,omitempty"`
	User    string       `json:"user"`
	UID     int          `json:"uid"`
	GID     int          `json:"gid"`
	ImageID string       `json:"image_id,omitempty"`
	// ImageUser is the user that the image itself names.
	ImageUser string `json:"image_user,omitempty"`
	// ImageEnv are the image's variables that bound a framework's GPU memory.
	ImageEnv []string `json:"image_env,omitempty"`
	// Takes is the recognised program if it takes a share of a GPU by design, or nil.
	Takes *servers.Found `json:"takes,omitempty"`
	// Says holds the facts in the command line beside the training, or is nil for a task
	// of an older program.
	Says   *api.Says  `json:"says,omitempty"`
	Detail string     `json:"detail,omitempty"` // the estimate's sentence
	Task   model.Task `json:"task"`
	// Job is the Job of the cluster that the task is, or nil if the task was submitted to
	// carma.
	Job *Job `json:"job,omitempty"`
	// Stop is the order to stop the task, or nil if nobody has requested it.
	Stop *StopOrder `json:"stop,omitempty"`
	// Curves are the memory curves of its attempts, by number.
	Curves map[int]*monitor.Curve `json:"curves,omitempty"`
	// Energy are the joules of its attempts that have ended, by number.
	Energy map[int]float64 `json:"energy,omitempty"`
	// Untouched are the attempts that were measured to have no memory on their GPUs.
	Untouched []int `json:"untouched,omitempty"`
	// Ends are the observations about the ends of its attempts, by number.
	Ends map[int]*AttemptEnd `json:"ends,omitempty"`
	// Params are the numbers of parameters that its output has named, or nil.
	Params *progress.Parameters `json:"params,omitempty"`

	Hidden bool `json:"-"` // a copy for somebody who may not see the values of its environment
}

// ID returns the task's number.
func (r *Record) ID() model.TaskID { return r.Task.ID }

// Row returns the record in the journal's form. Its body is made when it is written,
// because a submission may have many.
func (r *Record) Row() journal.TaskRow {
	return journal.TaskRow{
		ID: int64(r.Task.ID), Name: r.Name, User: r.User, Group: r.Group,
		Phase: string(r.Task.Phase), Finished: r.Task.Phase.Finished(),
		Submitted: int64(r.Task.Submitted), Ended: int64(r.Task.Ended), Make: func() ([]byte, error) { return json.Marshal(r) },
	}
}

// Decode returns the record of a row of the journal.
func Decode(row journal.TaskRow) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(row.Body, r); err != nil {
		return nil, fmt.Errorf("record of task %d: %w", row.ID, err)
	}
	return r, nil
}

// WithStop returns the record with an order to stop the task.
func (r *Record) WithStop(o StopOrder) *Record {
	c := *r
	c.Stop = &o
	return &c
}

// Unbuffered is the variable that makes Python write each line at once, also into a pipe.
const Unbuffered = "PYTHONUNBUFFERED"
