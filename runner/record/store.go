package record

import (
	"slices"
	"strconv"
	"sync"

	"carma/mapper/model"
)

// Store holds in memory the records of the unfinished tasks and of the tasks that
// finished last. The loop writes it, everybody reads it.
type Store struct {
	mu      sync.RWMutex
	entries map[model.TaskID]*entry
	names   map[string]model.TaskID // newest task with each name
	groups  map[string]int          // unfinished tasks of each group
	users   map[int]*Usage          // of the users' unfinished tasks, by uid
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

// KeepFinished is the number of finished tasks kept in memory; the journal has all.
const KeepFinished = 1000

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{
		entries: map[model.TaskID]*entry{}, names: map[string]model.TaskID{}, groups: map[string]int{}, users: map[int]*Usage{}, changed: make(chan struct{}),
	}
}

// Put adds or replaces the record of a task.
func (rs *Store) Put(r *Record) {
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
	if rs.done = append(rs.done, r.ID()); len(rs.done) > KeepFinished {
		rs.forget(rs.done[0])
		rs.done = rs.done[1:]
	}
}

// Usage returns the sum over a user's unfinished tasks.
func (rs *Store) Usage(uid int) Usage {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if u := rs.users[uid]; u != nil {
		return *u
	}
	return Usage{}
}

// count adds an unfinished task to the sums of its user and group: n is 1 to add the task
// and -1 to remove it.
func (rs *Store) count(r *Record, n int) {
	if r == nil || r.Task.Phase.Finished() {
		return
	}
	u := rs.users[r.UID]
	if u == nil {
		u = &Usage{}
		rs.users[r.UID] = u
	}
	if u.Add(&r.Submit, n); u.Tasks == 0 {
		delete(rs.users, r.UID)
	}
	if r.Group == "" {
		return
	}
	if rs.groups[r.Group] += n; rs.groups[r.Group] == 0 {
		delete(rs.groups, r.Group)
	}
}

// OpenGroup reports whether a group has unfinished tasks.
func (rs *Store) OpenGroup(name string) bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return rs.groups[name] > 0
}

// Drop removes a finished task for good.
func (rs *Store) Drop(id model.TaskID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.forget(id)
}

func (rs *Store) forget(id model.TaskID) {
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

// Get returns a record, and a channel that is closed when there is a newer record. Both
// are nil if the record is not in memory.
func (rs *Store) Get(id model.TaskID) (*Record, <-chan struct{}) {
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

// Find returns the record for a number or a name, or nil if it is not in memory.
func (rs *Store) Find(ref string) *Record {
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

// UnfinishedNamed returns the unfinished task of a name, or 0.
func (rs *Store) UnfinishedNamed(name string) model.TaskID {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if e := rs.entries[rs.names[name]]; e != nil && !e.rec.Task.Phase.Finished() {
		return e.rec.ID()
	}
	return 0
}

// Since returns the records that are newer than a version, in no order, the
// present version, and a channel that closes at the next change.
func (rs *Store) Since(version int64) ([]*Record, int64, <-chan struct{}) {
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

// Newest returns at most n of the wanted records, newest first, with numbers less than
// before. If before is 0, it considers all.
func (rs *Store) Newest(before model.TaskID, n int, wanted func(*Record) bool) (recs []*Record) {
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

// LastDone returns at most n of the tasks that finished last.
func (rs *Store) LastDone(n int) (recs []*Record) {
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

// HasForgotten reports whether finished tasks may be in the journal only.
func (rs *Store) HasForgotten() bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return len(rs.entries) >= KeepFinished
}

// place adds a number to the order. Before, it drops the forgotten numbers if
// they are more than half.
func (rs *Store) place(id model.TaskID) {
	if len(rs.order) > 2*len(rs.entries) {
		rs.order = slices.DeleteFunc(rs.order, func(id model.TaskID) bool { return rs.entries[id] == nil })
	}
	if i, there := slices.BinarySearch(rs.order, id); !there {
		rs.order = slices.Insert(rs.order, i, id)
	}
}

// All returns the records in memory, in no order.
func (rs *Store) All() []*Record {
	recs, _, _ := rs.Since(0)
	return recs
}
