package tasklog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// printer is a task of a user that prints numbered lines.
type printer struct {
	task    int64
	user    string
	w       *Writer
	printed []string
	done    bool
}

func (p *printer) at(i int) time.Time { return epoch.Add(time.Duration(i+1) * time.Millisecond) }

func (p *printer) print(n int) {
	text := fmt.Sprintf("%d %s", len(p.printed), strings.Repeat("x", n))
	_ = p.w.Write(p.at(len(p.printed)), Stdout, []byte(text), false) // a refusal is recorded
	p.printed = append(p.printed, text)
}

// check reads a task's output: whole lines in order, and a note with the right
// number where lines are missing.
func (p *printer) check(t *rapid.T, s *Store) {
	lines, err := s.Tail(p.task, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, l := range lines {
		n := 0
		if l.Stream == Note {
			if _, err := fmt.Sscanf(string(l.Text), "%d lines", &n); err != nil || !bytes.Contains(l.Text, []byte(" left out here: ")) {
				t.Fatalf("task %d: note %q: %v", p.task, l.Text, err)
			}
			next += n
			continue
		}
		if next >= len(p.printed) || string(l.Text) != p.printed[next] {
			t.Fatalf("task %d: line %.20q comes where number %d should", p.task, l.Text, next)
		}
		next++
	}
	if next != len(p.printed) {
		t.Fatalf("task %d: %d lines kept and noted, %d were printed", p.task, next, len(p.printed))
	}
}

// TestLimitsProperty: tasks of several users print, with crashes in between and a disk that
// gets full. No limit is ever exceeded, lines stored and recorded as lost add up to all
// printed lines, and order is kept.
func TestLimitsProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		limits := Limits{Attempt: MinLimit, Task: MinLimit * 5 / 4, User: MinLimit * 3 / 2, Total: MinLimit * 5 / 2, Free: 1}
		free := int64(1 << 40)
		open := func() *Store {
			s := New(dir, limits)
			s.disk = func(string) (int64, int64, error) { return 1 << 40, free, nil }
			return s
		}
		s := open()
		var all []*printer
		begin := func(p *printer) {
			s.Own(p.task, p.user)
			if p.done {
				s.Done(p.task, p.task)
				return
			}
			w, err := s.Writer(p.task, 1)
			if err != nil {
				rt.Fatal(err)
			}
			p.w = w
			for i := range p.printed { // the engine has it all
				_ = w.Write(p.at(i), Stdout, []byte(p.printed[i]), false)
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0, 1:
				p := &printer{task: int64(len(all) + 1), user: rapid.SampledFrom([]string{"ann", "bob", "eve"}).Draw(rt, "user")}
				all = append(all, p)
				begin(p)
			case 2: // the daemon is killed
				for _, p := range all {
					if !p.done {
						crash(p.w)
					}
				}
				s = open()
				for _, p := range all {
					begin(p)
				}
			case 3:
				free = rapid.SampledFrom([]int64{0, 100_000, 1 << 40}).Draw(rt, "free")
			case 4:
				if len(all) > 0 {
					p := rapid.SampledFrom(all).Draw(rt, "ends")
					free = 1 << 40
					if !p.done {
						p.print(1)
						_ = p.w.Close() // returns the losses
						p.done = len(must(s.Tail(p.task, 1, 1))) > 0
						s.Done(p.task, p.task)
						if lines, err := s.Tail(p.task, 1, 1); err != nil || len(lines) == 0 || string(lines[0].Text) != p.printed[len(p.printed)-1] {
							p.printed = p.printed[:0] // no room even for a note: the caller got an error
							p.done = true
							all = remove(all, p)
						}
					}
				}
			default:
				if len(all) > 0 {
					p := rapid.SampledFrom(all).Draw(rt, "prints")
					n := rapid.IntRange(1, MaxLine-100).Draw(rt, "length")
					for range rapid.IntRange(1, 20).Draw(rt, "lines") {
						if !p.done {
							p.print(n)
						}
					}
					if !p.done {
						_ = p.w.Flush()
					}
				}
			}
			checkAccounts(rt, s)
		}
		free = 1 << 40
		for _, p := range all {
			if p.done {
				p.check(rt, s)
			}
		}
	})
}

func must(lines []Line, _ error) []Line { return lines }

func remove(all []*printer, p *printer) []*printer {
	p.task = -1
	var rest []*printer
	for _, q := range all {
		if q != p {
			rest = append(rest, q)
		}
	}
	return rest
}

// checkAccounts compares the accounts with the disk, and both with the limits.
func checkAccounts(t *rapid.T, s *Store) {
	users, total := map[string]int64{}, int64(0)
	for id, b := range s.tasks {
		size := s.measure(id)
		if size != b.size {
			t.Fatalf("task %d has %d bytes on disk, %d in the accounts", id, size, b.size)
		}
		if size > s.Limits().Task {
			t.Fatalf("task %d has %d bytes, the limit is %d", id, size, s.Limits().Task)
		}
		users[b.user.name] += size
		total += size
	}
	for name, size := range users {
		if size > s.Limits().User || size != s.users[name].size {
			t.Fatalf("user %s has %d bytes, %d in the accounts, the limit is %d", name, size, s.users[name].size, s.Limits().User)
		}
	}
	if total > s.Limits().Total || total != s.total {
		t.Fatalf("%d bytes, %d in the accounts, the limit is %d", total, s.total, s.Limits().Total)
	}
}

// TestFloodCostsNobodyElse checks that a flood of output of one user removes only that user's
// output.
func TestFloodCostsNobodyElse(t *testing.T) {
	s := New(t.TempDir(), Limits{Attempt: MinLimit, User: 4 * MinLimit, Total: 4 * MinLimit})
	s.limits.Load().Free = 0
	full := func(task int64, user string, size int) *Writer {
		s.Own(task, user)
		w := mustWriter(t, s, task, 1)
		for i := range size / 1000 {
			_ = w.Write(epoch.Add(time.Duration(i+1)), Stdout, fmt.Appendf(nil, "%0950d", i), false)
		}
		_ = w.Flush()
		return w
	}
	bob := full(1, "bob", 900_000)
	closeLog(t, full(2, "bob", 900_000))
	s.Done(2, 1)
	closeLog(t, full(3, "eve", 800_000))
	s.Done(3, 0) // ended first of all
	var eves []*Writer
	for task := int64(10); task < 20; task++ {
		eves = append(eves, full(task, "eve", 3_000_000))
	}
	closeLog(t, bob)
	for _, task := range []int64{1, 2} {
		if lines, err := s.Tail(task, 1, 0); err != nil || len(lines) != 900 {
			t.Errorf("of bob's task %d %d lines are left, %v", task, len(lines), err)
		}
	}
	lines, err := s.Tail(3, 1, 0)
	if err != nil || len(lines) != 1 || string(lines[0].Text) != "800 lines (792800 bytes) left out here: removed to make room, as the output of all tasks is limited to 4.0 MiB" {
		t.Errorf("eve's old task has %d lines, the first %.200q, %v", len(lines), lines[0].Text, err)
	}
	for i, w := range eves {
		_ = w.Close()
		s.Done(int64(10+i), 2)
	}
	ann := full(30, "ann", 900_000) // within her share, so the user above the share loses output
	closeLog(t, ann)
	if lines, err := s.Tail(30, 1, 0); err != nil || len(lines) != 900 {
		t.Errorf("of ann's task %d lines are left, %v", len(lines), err)
	}
}

// TestFolderComesLate: if a folder cannot be made, output is lost, but the task continues. A
// folder that is deleted under a writer is noticed.
func TestFolderComesLate(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	s := New(dir, Limits{})
	s.limits.Load().Free = 0
	w := mustWriter(t, s, 1, 1)
	if err := s.Check(); err == nil {
		t.Error("the check finds nothing wrong")
	}
	if err := w.Write(epoch.Add(1), Stdout, []byte("a"), false); err == nil {
		t.Error("no error is reported")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	write(t, w, 2, Stdout, "b")
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err == nil || !strings.Contains(err.Error(), "moved or deleted") {
		t.Errorf("flush: %v", err)
	}
	write(t, w, 3, Stdout, "c")
	closeLog(t, w)
	got := texts(t, s, 0)
	if len(got) != 2 || got[0] != "m:2 lines (84 bytes) left out here: the folder of the output was moved or deleted" || got[1] != "o:c" {
		t.Errorf("log %q", got)
	}
}

// TestFormerFolder: output from before output-dir was set is still there.
func TestFormerFolder(t *testing.T) {
	old, dir := t.TempDir(), t.TempDir()
	s := Open(old, 0)
	w := mustWriter(t, s, 1, 1)
	write(t, w, 1, Stdout, "old")
	closeLog(t, w)
	s = New(dir, Limits{}, old)
	w = mustWriter(t, s, 1, 2)
	closeLog(t, w)
	w = mustWriter(t, s, 2, 1)
	closeLog(t, w)
	if got := texts(t, s, 0); len(got) != 1 || got[0] != "o:old" {
		t.Errorf("log %q", got)
	}
	if ids, err := s.Tasks(); fmt.Sprint(ids) != "[2 1]" || err != nil {
		t.Errorf("tasks %v, %v", ids, err)
	}
	if err := s.Remove(1); err != nil || exists(filepath.Join(old, "1")) {
		t.Errorf("removed: %v", err)
	}
}

// TestFloorOnRealDisk: output never fills the disk on which the journal lies.
func TestFloorOnRealDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("a small file system is needed, which this user may not mount: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	s := New(filepath.Join(dir, "logs"), Limits{Total: 1 << 40, User: 1 << 40, Task: 1 << 40, Attempt: 8 << 20})
	w := mustWriter(t, s, 1, 1)
	for i := range 20_000 { // 20 MB
		_ = w.Write(epoch.Add(time.Duration(i+1)), Stdout, fmt.Appendf(nil, "%0950d", i), false)
		if i%1000 == 0 {
			if _, free, err := room(dir); err != nil || free < s.Limits().Free-8192 {
				t.Fatalf("%d bytes are free, %d should be: %v", free, s.Limits().Free, err)
			}
		}
	}
	_ = w.Close()
	lines, err := s.Tail(1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	kept, noted := 0, 0
	for _, l := range lines {
		if n := 0; l.Stream == Note {
			if _, err := fmt.Sscanf(string(l.Text), "%d lines", &n); err != nil || !strings.Contains(string(l.Text), "of the disk stay free") {
				t.Errorf("note %q", l.Text)
			}
			noted += n
		} else {
			kept++
		}
	}
	if last := string(lines[len(lines)-1].Text); kept+noted != 20_000 || !strings.HasSuffix(last, "19999") {
		t.Errorf("%d lines kept, %d noted; the last is %.100q", kept, noted, last)
	}
}
