package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"carma/estimator/servers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/monitor"
	"carma/runner/progress"
)

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
	Job *ofJob `json:"job,omitempty"`
	// Stop is the order to stop the task, or nil if nobody has requested it.
	Stop *stopOrder `json:"stop,omitempty"`
	// Curves are the memory curves of its attempts, by number.
	Curves map[int]*monitor.Curve `json:"curves,omitempty"`
	// Energy are the joules of its attempts that have ended, by number.
	Energy map[int]float64 `json:"energy,omitempty"`
	// Untouched are the attempts that were measured to have no memory on their GPUs.
	Untouched []int `json:"untouched,omitempty"`
	// Ends are the observations about the ends of its attempts, by number.
	Ends map[int]*attemptEnd `json:"ends,omitempty"`
	// Params are the numbers of parameters that its output has named, or nil.
	Params *progress.Parameters `json:"params,omitempty"`

	hidden bool // a copy for somebody who may not see the values of its environment
}

// ID returns the task's number.
func (r *Record) ID() model.TaskID { return r.Task.ID }

// row returns the record in the journal's form. Its body is made when it is written,
// because a submission may have many.
func (r *Record) row() journal.TaskRow {
	return journal.TaskRow{
		ID: int64(r.Task.ID), Name: r.Name, User: r.User, Group: r.Group,
		Phase: string(r.Task.Phase), Finished: r.Task.Phase.Finished(),
		Submitted: int64(r.Task.Submitted), Ended: int64(r.Task.Ended), Make: func() ([]byte, error) { return json.Marshal(r) },
	}
}

func recordOf(row journal.TaskRow) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(row.Body, r); err != nil {
		return nil, fmt.Errorf("record of task %d: %w", row.ID, err)
	}
	return r, nil
}

// records holds in memory the records of the unfinished tasks and of the tasks that
// finished last. The loop writes it, everybody reads it.
type records struct {
	mu      sync.RWMutex
	entries map[model.TaskID]*entry
	names   map[string]model.TaskID // newest task with each name
	groups  map[string]int          // unfinished tasks of each group
	users   map[int]*usage          // of the users' unfinished tasks, by uid
	done    []model.TaskID          // finished tasks, oldest first
	order   []model.TaskID          // numbers of entries, ascending; some are forgotten
	version int64
	changed chan struct{} // closed at the next change
}

type entry struct {
	rec     *Record
	version int64
	changed chan struct{} // closed at the task's next change; nil if nobody waits
}

// keepFinished is the number of finished tasks kept in memory; the journal has all.
const keepFinished = 1000

func newRecords() *records {
	return &records{
		entries: map[model.TaskID]*entry{}, names: map[string]model.TaskID{}, groups: map[string]int{}, users: map[int]*usage{}, changed: make(chan struct{}),
	}
}

func (rs *records) put(r *Record) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.version++
	e := rs.entries[r.ID()]
	if e == nil {
		e = &entry{}
		rs.entries[r.ID()] = e
		rs.place(r.ID())
		if rs.names[r.Name] <= r.ID() {
			rs.names[r.Name] = r.ID()
		}
	}
	if e.rec != nil && e.rec.Name != r.Name { // the task was renamed
		if rs.names[e.rec.Name] == r.ID() {
			delete(rs.names, e.rec.Name)
		}
		rs.names[r.Name] = r.ID()
	}
	rs.count(e.rec, -1)
	rs.count(r, 1)
	finishedNow := r.Task.Phase.Finished() && (e.rec == nil || !e.rec.Task.Phase.Finished())
	e.rec, e.version = r, rs.version
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
	close(rs.changed)
	rs.changed = make(chan struct{})
	if !finishedNow {
		return
	}
	if rs.done = append(rs.done, r.ID()); len(rs.done) > keepFinished {
		rs.forget(rs.done[0])
		rs.done = rs.done[1:]
	}
}

// usage returns the sum over a user's unfinished tasks.
func (rs *records) usage(uid int) usage {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if u := rs.users[uid]; u != nil {
		return *u
	}
	return usage{}
}

// count adds an unfinished task to the sums of its user and group: n is 1 to add the task
// and -1 to remove it.
func (rs *records) count(r *Record, n int) {
	if r == nil || r.Task.Phase.Finished() {
		return
	}
	u := rs.users[r.UID]
	if u == nil {
		u = &usage{}
		rs.users[r.UID] = u
	}
	if u.add(&r.Submit, n); u.tasks == 0 {
		delete(rs.users, r.UID)
	}
	if r.Group == "" {
		return
	}
	if rs.groups[r.Group] += n; rs.groups[r.Group] == 0 {
		delete(rs.groups, r.Group)
	}
}

// openGroup reports whether a group has unfinished tasks.
func (rs *records) openGroup(name string) bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.groups[name] > 0
}

// drop removes a finished task for good.
func (rs *records) drop(id model.TaskID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.forget(id)
}

func (rs *records) forget(id model.TaskID) {
	e := rs.entries[id]
	if e == nil {
		return
	}
	if e.changed != nil {
		close(e.changed)
	}
	delete(rs.entries, id)
	if rs.names[e.rec.Name] == id {
		delete(rs.names, e.rec.Name)
	}
}

// get returns a record, and a channel that is closed when there is a newer record. Both
// are nil if the record is not in memory.
func (rs *records) get(id model.TaskID) (*Record, <-chan struct{}) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	e := rs.entries[id]
	if e == nil {
		return nil, nil
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.rec, e.changed
}

// find returns the record for a number or a name, or nil if it is not in memory.
func (rs *records) find(ref string) *Record {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	id, ok := rs.names[ref]
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil {
		id, ok = model.TaskID(n), true
	}
	if e := rs.entries[id]; ok && e != nil {
		return e.rec
	}
	return nil
}

// unfinishedNamed returns the unfinished task of a name, or 0.
func (rs *records) unfinishedNamed(name string) model.TaskID {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if e := rs.entries[rs.names[name]]; e != nil && !e.rec.Task.Phase.Finished() {
		return e.rec.ID()
	}
	return 0
}

// since returns the records that are newer than a version, in no order, the
// present version, and a channel that closes at the next change.
func (rs *records) since(version int64) ([]*Record, int64, <-chan struct{}) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	var newer []*Record
	if version < rs.version {
		for _, e := range rs.entries {
			if e.version > version {
				newer = append(newer, e.rec)
			}
		}
	}
	return newer, rs.version, rs.changed
}

// newest returns at most n of the wanted records with a number below before, newest first.
// If before is 0, it considers all.
func (rs *records) newest(before model.TaskID, n int, wanted func(*Record) bool) (recs []*Record) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	last := len(rs.order)
	if before > 0 {
		last, _ = slices.BinarySearch(rs.order, before)
	}
	for i := last - 1; i >= 0 && len(recs) < n; i-- {
		if e := rs.entries[rs.order[i]]; e != nil && wanted(e.rec) {
			recs = append(recs, e.rec)
		}
	}
	return recs
}

// lastDone returns at most n of the tasks that finished last.
func (rs *records) lastDone(n int) (recs []*Record) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	for _, id := range slices.Backward(rs.done) {
		if e := rs.entries[id]; e != nil && len(recs) < n {
			recs = append(recs, e.rec)
		} else if e != nil {
			break
		}
	}
	return recs
}

// hasForgotten reports whether finished tasks may be in the journal only.
func (rs *records) hasForgotten() bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return len(rs.entries) >= keepFinished
}

// place adds a number to the order. Before, it drops the forgotten numbers if
// they are more than half.
func (rs *records) place(id model.TaskID) {
	if len(rs.order) > 2*len(rs.entries) {
		rs.order = slices.DeleteFunc(rs.order, func(id model.TaskID) bool { return rs.entries[id] == nil })
	}
	if i, there := slices.BinarySearch(rs.order, id); !there {
		rs.order = slices.Insert(rs.order, i, id)
	}
}

func (rs *records) all() []*Record {
	recs, _, _ := rs.since(0)
	return recs
}
