package journal

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// model is the expected content of a journal.
type model struct {
	events    []Event // events[i] has number i+1; pruned ones stay here
	first     int64
	decisions map[[2]int64]Decision
	tasks     map[int64]TaskRow
	snapshots []Snapshot // at most two, oldest first
	maxTask   int64
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		j, err := Open(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { j.Close() }()
		m := model{first: 1, decisions: map[[2]int64]Decision{}, tasks: map[int64]TaskRow{}}
		rt.Repeat(map[string]func(*rapid.T){
			"commit":   func(rt *rapid.T) { m.commit(rt, j) },
			"snapshot": func(rt *rapid.T) { m.snapshot(rt, j) },
			"prune":    func(rt *rapid.T) { m.prune(rt, j) },
			"delete": func(rt *rapid.T) {
				ids := rapid.SliceOfN(rapid.Int64Range(1, 12), 0, 3).Draw(rt, "ids")
				if err := j.DeleteTasks(ids...); err != nil {
					rt.Fatal(err)
				}
				for _, id := range ids {
					delete(m.tasks, id)
				}
			},
			"reopen": func(rt *rapid.T) {
				if err := j.Close(); err != nil {
					rt.Fatal(err)
				}
				if j, err = Open(dir); err != nil {
					rt.Fatal(err)
				}
			},
			"check": func(rt *rapid.T) { m.check(rt, j) },
		})
		m.check(rt, j)
	})
}

func (m *model) commit(rt *rapid.T, j *Journal) {
	var b Batch
	body := rapid.Custom(func(rt *rapid.T) []byte {
		return append([]byte(nil), rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "bytes")...) // empty is nil
	})
	for range rapid.IntRange(0, 6).Draw(rt, "events") {
		b.Events = append(b.Events, Event{At: rapid.Int64Range(0, 100).Draw(rt, "at"), Kind: rapid.String().Draw(rt, "kind"), Body: body.Draw(rt, "body")})
	}
	last := int64(len(m.events) + len(b.Events))
	for range rapid.IntRange(0, 4).Draw(rt, "decisions") {
		if last >= m.first {
			b.Decisions = append(b.Decisions, Decision{Seq: rapid.Int64Range(m.first, last).Draw(rt, "seq"), N: rapid.IntRange(0, 2).Draw(rt, "n"), Body: body.Draw(rt, "body")})
		}
	}
	for range rapid.IntRange(0, 4).Draw(rt, "tasks") {
		b.Tasks = append(b.Tasks, TaskRow{ID: rapid.Int64Range(1, 12).Draw(rt, "id"), Finished: rapid.Bool().Draw(rt, "finished"), Body: body.Draw(rt, "body")})
	}
	if rapid.IntRange(0, 4).Draw(rt, "spoil") == 0 {
		b.Tasks = append(b.Tasks, TaskRow{ID: -1})
		if _, err := j.Commit(b); err == nil {
			rt.Fatal("a bad batch was stored")
		}
		return
	}
	first, err := j.Commit(b)
	if err != nil || first != int64(len(m.events))+1 {
		rt.Fatalf("first event %d (%v), want %d", first, err, len(m.events)+1)
	}
	for i, e := range b.Events {
		e.Seq = first + int64(i)
		m.events = append(m.events, e)
	}
	for _, d := range b.Decisions {
		m.decisions[[2]int64{d.Seq, int64(d.N)}] = d
	}
	for _, t := range b.Tasks {
		m.tasks[t.ID] = t
		m.maxTask = max(m.maxTask, t.ID)
	}
}

func (m *model) snapshot(rt *rapid.T, j *Journal) {
	last := int64(len(m.events))
	if last < m.first {
		return
	}
	s := Snapshot{Seq: rapid.Int64Range(m.first, last).Draw(rt, "seq"), Body: fmt.Append(nil, last)}
	if err := j.Snapshot(s.Seq, s.At, s.Body); err != nil {
		rt.Fatal(err)
	}
	m.snapshots = slices.DeleteFunc(m.snapshots, func(o Snapshot) bool { return o.Seq == s.Seq })
	m.snapshots = append(m.snapshots, s)
	slices.SortFunc(m.snapshots, func(a, b Snapshot) int { return int(a.Seq - b.Seq) })
	m.snapshots = m.snapshots[max(0, len(m.snapshots)-2):]
}

func (m *model) prune(rt *rapid.T, j *Journal) {
	keep, olderThan := rapid.IntRange(0, 20).Draw(rt, "keep"), rapid.Int64Range(0, 120).Draw(rt, "older")
	n, err := j.Prune(keep, olderThan)
	if err != nil {
		rt.Fatal(err)
	}
	want := 0
	for seq := m.first; len(m.snapshots) == 2 && seq <= m.snapshots[0].Seq &&
		seq <= int64(len(m.events)-keep) && m.events[seq-1].At < olderThan; seq++ {
		want++
	}
	if n != want {
		rt.Fatalf("pruned %d, want %d", n, want)
	}
	m.first += int64(n)
	maps.DeleteFunc(m.decisions, func(k [2]int64, _ Decision) bool { return k[0] < m.first })
}

func (m *model) check(rt *rapid.T, j *Journal) {
	first, last, err := j.Bounds()
	if err != nil || first != m.first || last != int64(len(m.events)) {
		rt.Fatalf("events %d to %d (%v), want %d to %d", first, last, err, m.first, len(m.events))
	}
	seq := m.first
	for e, err := range j.Events(m.first - 1) {
		if err != nil || !reflect.DeepEqual(e, m.events[seq-1]) {
			rt.Fatalf("event %+v (%v), want %+v", e, err, m.events[seq-1])
		}
		seq++
	}
	if seq != last+1 {
		rt.Fatalf("events end at %d, want %d", seq-1, last)
	}
	decisions := map[[2]int64]Decision{}
	for d, err := range j.Decisions(0) {
		if err != nil {
			rt.Fatal(err)
		}
		decisions[[2]int64{d.Seq, int64(d.N)}] = d
	}
	if !reflect.DeepEqual(decisions, m.decisions) {
		rt.Fatalf("decisions %v, want %v", decisions, m.decisions)
	}
	tasks, err := j.Tasks(Filter{})
	if err != nil || len(tasks) != len(m.tasks) {
		rt.Fatalf("%d tasks, want %d (%v)", len(tasks), len(m.tasks), err)
	}
	for _, got := range tasks {
		if !reflect.DeepEqual(got, m.tasks[got.ID]) {
			rt.Fatalf("task %+v, want %+v", got, m.tasks[got.ID])
		}
	}
	if id, err := j.MaxTaskID(); id != m.maxTask || err != nil {
		rt.Fatalf("highest task %d (%v), want %d", id, err, m.maxTask)
	}
	var want Snapshot
	if n := len(m.snapshots); n > 0 {
		want = m.snapshots[n-1]
	}
	if s, err := j.Load(); err != nil || !reflect.DeepEqual(s, want) {
		rt.Fatalf("snapshot %+v (%v), want %+v", s, err, want)
	}
}

// Readers see whole commits only, while the writer commits, takes snapshots
// and prunes.
func TestConcurrentReaders(t *testing.T) {
	const batches, size = 150, 8
	dir := t.TempDir()
	j := mustOpen(t, dir)
	outside, err := OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, r := range []*Reader{&j.Reader, &j.Reader, outside} {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					watch(t, r, size)
				}
			}
		})
	}
	for i := range batches {
		b := Batch{Events: events(size, "x")}
		b.Tasks = []TaskRow{{ID: int64(i%5 + 1), Submitted: int64(i+1) * size}}
		mustCommit(t, j, b)
		if i%10 == 9 {
			if err := j.Snapshot(int64(i)*size, 0, make([]byte, 10000)); err != nil {
				t.Error(err)
			}
			if _, err := j.Prune(10*size, 1<<60); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	wg.Wait()
}

func watch(t *testing.T, r *Reader, size int64) {
	err := r.View(func(r *Reader) error {
		_, last, err := r.Bounds()
		if err != nil || last%size != 0 {
			t.Errorf("the journal ends at %d, inside a commit (%v)", last, err)
			return nil
		}
		tasks, err := r.Tasks(Filter{})
		if err != nil {
			return err
		}
		highest := int64(0)
		for _, task := range tasks {
			highest = max(highest, task.Submitted)
		}
		if highest != last {
			t.Errorf("the newest task is of event %d, the newest event is %d", highest, last)
		}
		s, err := r.Load()
		if err != nil || s.Damaged != nil {
			t.Error(err, s.Damaged)
		}
		for e, err := range r.Events(s.Seq) {
			if err != nil {
				return err
			}
			s.Seq = e.Seq
		}
		if s.Seq != last {
			t.Errorf("events end at %d, not %d", s.Seq, last)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
