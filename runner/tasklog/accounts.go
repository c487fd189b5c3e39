package tasklog

import (
	"container/heap"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// taskAccount is the store's record of one task's output. Store.mu guards it.
type taskAccount struct {
	id    int64
	user  *userAccount
	size  int64
	done  bool  // the task is over
	ended int64 // when the task ended, in the caller's time
}

// userAccount sums up the tasks of one user.
type userAccount struct {
	name string
	size int64
	open map[int64]*taskAccount // tasks that are not over
	done doneTasks              // ended tasks, the first to end on top; some have been removed since
}

// doneTasks is a heap, ordered by the end.
type doneTasks []*taskAccount

func (d doneTasks) Len() int      { return len(d) }
func (d doneTasks) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *doneTasks) Push(t any)   { *d = append(*d, t.(*taskAccount)) }
func (d doneTasks) Less(i, j int) bool {
	return d[i].ended < d[j].ended || d[i].ended == d[j].ended && d[i].id < d[j].id
}
func (d *doneTasks) Pop() any {
	last := len(*d) - 1
	t := (*d)[last]
	*d = (*d)[:last]
	return t
}

// Own sets the user of a task, and counts the task's output on disk for that user. Until
// then the task counts for a user without a name, who has a share like other users. Own
// may be repeated.
func (s *Store) Own(task int64, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.task(task)
	if t.user.name == user {
		return
	}
	t.user.size -= t.size
	delete(t.user.open, t.id)
	t.user = s.user(user)
	t.user.size += t.size
	if t.done {
		heap.Push(&t.user.done, t)
	} else {
		t.user.open[t.id] = t
	}
}

// Done records that a task is over, and when, in the caller's time. From then on the
// task's output is removed before the output of tasks that still write. Done may be
// repeated.
func (s *Store) Done(task, ended int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.task(task)
	if t.done {
		return
	}
	t.done, t.ended = true, ended
	delete(t.user.open, t.id)
	heap.Push(&t.user.done, t)
}

// Usage is the disk use of output, in bytes.
type Usage struct {
	Limits
	Dir   string
	Tasks int // the number of tasks that are known
	Bytes int64
	Users map[string]int64
}

// Usage returns the usage counted so far. After a start it grows until all output on disk
// is counted.
func (s *Store) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := Usage{Limits: s.Limits(), Dir: s.dir, Tasks: len(s.tasks), Bytes: s.total, Users: map[string]int64{}}
	for name, b := range s.users {
		if b.size > 0 {
			u.Users[name] = b.size
		}
	}
	return u
}

func (s *Store) user(name string) *userAccount {
	u := s.users[name]
	if u == nil {
		u = &userAccount{name: name, open: map[int64]*taskAccount{}}
		s.users[name] = u
	}
	return u
}

// task returns a task's account, which begins with the size on disk.
func (s *Store) task(id int64) *taskAccount {
	t := s.tasks[id]
	if t == nil {
		t = &taskAccount{id: id, user: s.user("")}
		s.tasks[id] = t
		t.user.open[id] = t
		s.count(t, s.measure(id))
	}
	return t
}

// measure returns the size of a task's files in bytes.
func (s *Store) measure(task int64) (n int64) {
	entries, _ := os.ReadDir(s.folder(task))
	for _, e := range entries {
		if _, ok := parseName(e.Name()); !ok {
			continue
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// recount counts a task's files again.
func (s *Store) recount(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.task(id)
	s.count(t, s.measure(id)-t.size)
}

// count adds n bytes to a task's account; n may be negative.
func (s *Store) count(t *taskAccount, n int64) {
	t.size += n
	t.user.size += n
	s.total += n
}

// forgetTask removes a task's account.
func (s *Store) forgetTask(id int64) {
	t := s.tasks[id]
	if t == nil {
		return
	}
	s.count(t, -t.size)
	delete(t.user.open, id)
	delete(s.tasks, id)
}

// take makes room for n bytes of a writer and counts them. If there is no room, it
// returns the limit that is reached.
func (s *Store) take(w *Writer, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.task(w.k.task)
	for {
		over := s.over(t, n)
		if over == nil {
			s.count(t, n)
			return nil
		}
		if !s.makeRoom(t, over, n) {
			return over
		}
	}
}

// give subtracts n bytes from a task's account, because they were not written or were
// removed.
func (s *Store) give(task, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[task]; t != nil {
		s.count(t, -n)
	}
}

// over returns the first limit that n more bytes would exceed.
func (s *Store) over(t *taskAccount, n int64) *full {
	switch l := s.Limits(); {
	case t.size+n > l.Task:
		return &full{limit: l.Task, of: ofTask}
	case t.user.size+n > l.User:
		return &full{limit: l.User, of: ofUser, user: t.user.name}
	case s.total+n > l.Total:
		return &full{limit: l.Total, of: ofTotal}
	}
	if s.Limits().Free == 0 {
		return nil
	}
	if _, free, err := s.disk(s.folder(t.id)); err == nil && free < s.Limits().Free+n {
		return &full{limit: s.Limits().Free, of: ofDisk}
	}
	return nil
}

// makeRoom removes the piece of output that must go first when t needs n bytes and a limit
// is reached. It returns false if there is none. By limit:
//
//   - A task's limit removes the middle of the task's own output, the oldest attempt's
//     first.
//   - A user's limit removes the output of the task that ended first, else the middle of
//     the largest task's output.
//   - Under the total limit each user has an equal share. A user above the share loses own
//     output. A user within the share gets room from the user furthest above it.
//   - The disk's limit removes the task's own output, because it is unknown who fills the
//     disk.
func (s *Store) makeRoom(t *taskAccount, over *full, n int64) bool {
	switch over.of {
	case ofTask, ofDisk:
		return s.dropMiddle(t, over)
	case ofUser:
		return s.dropOf(t.user, over)
	default:
		return s.dropOf(s.payer(t.user, n), over)
	}
}

// payer returns the user who loses output when the total is reached.
func (s *Store) payer(u *userAccount, n int64) *userAccount {
	users := int64(0)
	most := u
	for _, b := range s.users {
		if b.size == 0 && b != u {
			continue
		}
		users++
		if b.size > most.size || b.size == most.size && b.name < most.name {
			most = b
		}
	}
	if u.size+n > s.Limits().Total/users {
		return u
	}
	return most
}

func (s *Store) dropOf(u *userAccount, over *full) bool {
	for len(u.done) > 0 {
		t := heap.Pop(&u.done).(*taskAccount)
		if s.tasks[t.id] == t && t.user == u && s.expire(t, "removed to make room, as "+over.Error()) > 0 {
			return true
		}
	}
	open := make([]*taskAccount, 0, len(u.open))
	for _, t := range u.open {
		open = append(open, t)
	}
	slices.SortFunc(open, func(a, b *taskAccount) int {
		if a.size != b.size {
			return int(min(max(b.size-a.size, -1), 1))
		}
		return int(a.id - b.id)
	})
	for _, t := range open {
		if s.dropMiddle(t, over) {
			return true
		}
	}
	return false
}

// dropMiddle deletes the oldest file of a task that may be deleted.
func (s *Store) dropMiddle(t *taskAccount, over *full) bool {
	attempts, err := s.Attempts(t.id)
	if err != nil {
		return false
	}
	for _, n := range attempts {
		k := key{t.id, n}
		segs, err := s.segments(k)
		if err != nil || !s.droppable(k, segs) {
			continue
		}
		return s.dropSegment(k, segs[1], over) == nil
	}
	return false
}

// dropSegment deletes a file of an attempt's output and records the reason.
func (s *Store) dropSegment(k key, seg segment, over *full) error {
	s.because(k, over)
	path := s.path(k, seg)
	size := int64(0)
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if w := s.writers[k]; w != nil {
		w.older.Add(-size)
	}
	if t := s.tasks[k.task]; t != nil {
		s.count(t, -size)
	}
	return nil
}
