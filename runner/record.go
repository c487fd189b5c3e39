package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"carma/mapper"
	"carma/runner/api"
	"carma/runner/journal"
)

// Record is everything known about a task: what was asked for, by whom, and
// what the mapper has made of it. Records are never changed, only replaced.
type Record struct {
	Submit api.Submit `json:"submit"`
	Name   string     `json:"name"`
	// Nonce is random, so that no other task's container is taken for this
	// one's. Empty: submitted to a program that had none.
	Nonce string `json:"nonce,omitempty"`
	// Group is the name of the tasks it was submitted with, GroupID the number
	// of the first of them; empty and 0: it was submitted alone.
	Group   string        `json:"group,omitempty"`
	GroupID mapper.TaskID `json:"group_id,omitempty"`
	User    string        `json:"user"`
	UID     int           `json:"uid"`
	GID     int           `json:"gid"`
	ImageID string        `json:"image_id,omitempty"`
	// ImageUser is the user that the image itself names.
	ImageUser string `json:"image_user,omitempty"`
	// ImageEnv are those of the image's variables that bound a framework's GPU
	// memory.
	ImageEnv []string    `json:"image_env,omitempty"`
	Detail   string      `json:"detail,omitempty"` // the estimate's sentence
	Task     mapper.Task `json:"task"`
	// Stop is how somebody wants it to be stopped; nil: nobody has asked.
	Stop *stopOrder `json:"stop,omitempty"`
	// Curves are the memory its attempts were seen to use, by their numbers.
	Curves map[int]*curve `json:"curves,omitempty"`
}

// ID is the task's number.
func (r *Record) ID() mapper.TaskID { return r.Task.ID }

// row is the record as the journal keeps it. Its body is made when it is written:
// a submission's are many.
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

// book holds the records of the unfinished tasks and of those that finished
// lately. The loop writes it, everybody reads it.
type book struct {
	mu      sync.RWMutex
	entries map[mapper.TaskID]*entry
	names   map[string]mapper.TaskID // newest task of a name
	groups  map[string]int           // unfinished tasks of each group
	users   map[int]*usage           // of the users' unfinished tasks, by uid
	done    []mapper.TaskID          // finished ones, oldest first
	order   []mapper.TaskID          // of entries, ascending; some have been forgotten since
	version int64
	changed chan struct{} // closed at the next change
}

type entry struct {
	rec     *Record
	version int64
	changed chan struct{} // closed at the next change of this task; nil: nobody waits
}

// keepFinished is how many finished tasks stay in memory; the journal has all.
const keepFinished = 1000

func newBook() *book {
	return &book{
		entries: map[mapper.TaskID]*entry{}, names: map[string]mapper.TaskID{}, groups: map[string]int{}, users: map[int]*usage{}, changed: make(chan struct{}),
	}
}

func (b *book) put(r *Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	e := b.entries[r.ID()]
	if e == nil {
		e = &entry{}
		b.entries[r.ID()] = e
		b.place(r.ID())
		if b.names[r.Name] <= r.ID() {
			b.names[r.Name] = r.ID()
		}
	}
	b.count(e.rec, -1)
	b.count(r, 1)
	finishedNow := r.Task.Phase.Finished() && (e.rec == nil || !e.rec.Task.Phase.Finished())
	e.rec, e.version = r, b.version
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
	close(b.changed)
	b.changed = make(chan struct{})
	if !finishedNow {
		return
	}
	if b.done = append(b.done, r.ID()); len(b.done) > keepFinished {
		b.forget(b.done[0])
		b.done = b.done[1:]
	}
}

// usage is the sum over a user's unfinished tasks.
func (b *book) usage(uid int) usage {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if u := b.users[uid]; u != nil {
		return *u
	}
	return usage{}
}

// count keeps the numbers of a user's and a group's unfinished tasks.
func (b *book) count(r *Record, n int) {
	if r == nil || r.Task.Phase.Finished() {
		return
	}
	u := b.users[r.UID]
	if u == nil {
		u = &usage{}
		b.users[r.UID] = u
	}
	if u.add(&r.Submit, n); u.tasks == 0 {
		delete(b.users, r.UID)
	}
	if r.Group == "" {
		return
	}
	if b.groups[r.Group] += n; b.groups[r.Group] == 0 {
		delete(b.groups, r.Group)
	}
}

// openGroup reports whether a group has unfinished tasks.
func (b *book) openGroup(name string) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.groups[name] > 0
}

// drop removes a finished task for good.
func (b *book) drop(id mapper.TaskID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(id)
}

func (b *book) forget(id mapper.TaskID) {
	e := b.entries[id]
	if e == nil {
		return
	}
	if e.changed != nil {
		close(e.changed)
	}
	delete(b.entries, id)
	if b.names[e.rec.Name] == id {
		delete(b.names, e.rec.Name)
	}
}

// get returns a record, and a channel that closes when there is a newer one.
func (b *book) get(id mapper.TaskID) (*Record, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	if e == nil {
		return nil, nil
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.rec, e.changed
}

// find returns the record for a number or a name; nil if it is not in memory.
func (b *book) find(ref string) *Record {
	b.mu.RLock()
	defer b.mu.RUnlock()
	id, ok := b.names[ref]
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil {
		id, ok = mapper.TaskID(n), true
	}
	if e := b.entries[id]; ok && e != nil {
		return e.rec
	}
	return nil
}

// unfinishedNamed returns the unfinished task of a name, or 0.
func (b *book) unfinishedNamed(name string) mapper.TaskID {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if e := b.entries[b.names[name]]; e != nil && !e.rec.Task.Phase.Finished() {
		return e.rec.ID()
	}
	return 0
}

// since returns the records that are newer than a version, the version they
// are from, and a channel that closes at the next change.
func (b *book) since(version int64) ([]*Record, int64, <-chan struct{}) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var newer []*Record
	if version < b.version {
		for _, e := range b.entries {
			if e.version > version {
				newer = append(newer, e.rec)
			}
		}
	}
	return newer, b.version, b.changed
}

// newest returns the records that are wanted, the newest first and at most n:
// those below a number, or all if that is 0.
func (b *book) newest(before mapper.TaskID, n int, wanted func(*Record) bool) (recs []*Record) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	last := len(b.order)
	if before > 0 {
		last, _ = slices.BinarySearch(b.order, before)
	}
	for i := last - 1; i >= 0 && len(recs) < n; i-- {
		if e := b.entries[b.order[i]]; e != nil && wanted(e.rec) {
			recs = append(recs, e.rec)
		}
	}
	return recs
}

// hasForgotten reports whether finished tasks may be in the journal only.
func (b *book) hasForgotten() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.entries) >= keepFinished
}

// place adds a number to the order, which drops those that are forgotten when
// they have become half of it.
func (b *book) place(id mapper.TaskID) {
	if len(b.order) > 2*len(b.entries) {
		b.order = slices.DeleteFunc(b.order, func(id mapper.TaskID) bool { return b.entries[id] == nil })
	}
	if i, there := slices.BinarySearch(b.order, id); !there {
		b.order = slices.Insert(b.order, i, id)
	}
}

func (b *book) all() []*Record {
	recs, _, _ := b.since(0)
	return recs
}
