package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// frozen is a journal after kill -9: its files, with all acknowledged rows. They can be
// restored any number of times, with damage.
type frozen struct {
	dir   string
	o     Options
	files map[string][]byte
	acked int64 // the last event
}

const frozenTasks = 60

// inMemory returns a folder on a disk with free syncs, if there is one: these tests open
// hundreds of journals.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "carma-journal-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// freeze makes a journal of 60 tasks, one to a commit, and then a snapshot.
// Some commits are in the database, some only in its log.
func freeze(t *testing.T, o Options) *frozen {
	t.Helper()
	f := &frozen{dir: filepath.Join(inMemory(t), "journal"), o: o}
	j, err := OpenWith(f.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for id := int64(1); id <= frozenTasks; id++ {
		b := Batch{
			Events:    []Event{{At: id * 1e9, Kind: "task-submitted", Body: fmt.Appendf(nil, `{"id":%d}`, id)}, {At: id * 1e9, Kind: "estimated", Body: make([]byte, 200)}},
			Decisions: []Decision{{Seq: 2 * id, Kind: "launch", Body: fmt.Appendf(nil, `{"task":%d}`, id)}},
			Tasks:     []TaskRow{{ID: id, User: "ann", Phase: "queued", Body: make([]byte, 300)}},
			Decided:   2 * id,
		}
		if id%3 == 0 { // decisions come later than their event; only they are lost
			mustCommit(t, j, Batch{Events: b.Events})
			b.Events = nil
		}
		mustCommit(t, j, b)
		f.acked = 2 * id
		if id == frozenTasks/3 {
			if err := j.SetMeta("instance", []byte("abcd")); err != nil {
				t.Fatal(err)
			}
			tamper(t, j, "PRAGMA wal_checkpoint(TRUNCATE)")
		}
		if id == 2*frozenTasks/3 {
			if err := j.Snapshot(f.acked, 0, []byte(strings.Repeat("state", 500))); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.files = f.read(t)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(f.dir, dataFile), f.dir+"-original"); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *frozen) read(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{dataFile, dataFile + "-wal", witnessFile} {
		b, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	return files
}

// thaw restores the files and damages them.
func (f *frozen) thaw(t *testing.T, damage func(files map[string][]byte)) {
	t.Helper()
	files := map[string][]byte{}
	for name, b := range f.files {
		files[name] = append([]byte(nil), b...)
	}
	damage(files)
	for _, name := range []string{dataFile, dataFile + "-wal", dataFile + "-shm", witnessFile} {
		path := filepath.Join(f.dir, name)
		b, there := files[name]
		err := os.Remove(path)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err == nil && there && name == dataFile { // the same file: a copy has another inode
			err = os.Link(f.dir+"-original", path)
		}
		if err == nil && there {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// check opens the journal after damage. Either no acknowledged row is missing, or the error
// contains a command, and after that command the journal opens.
func (f *frozen) check(t *testing.T, what string, damage func(files map[string][]byte)) (refused bool) {
	t.Helper()
	f.thaw(t, damage)
	j, err := OpenWith(f.dir, f.o)
	if err == nil {
		defer j.Close()
		f.whole(t, what, j)
		return false
	}
	var r *Refusal
	if !errors.As(err, &r) || !errors.Is(err, ErrDamaged) || !strings.Contains(r.Fix, "carma journal repair --accept-loss") {
		t.Errorf("%s: refused with %v", what, err)
	}
	if _, err := Repair(f.dir, RepairOptions{Do: true, AcceptLoss: true}); err != nil {
		t.Errorf("%s: repair: %v", what, err)
		return true
	}
	j, err = OpenWith(f.dir, f.o)
	if err != nil {
		t.Errorf("%s: after the repair: %v", what, err)
		return true
	}
	defer j.Close()
	if err := j.Check(); err != nil {
		t.Errorf("%s: after the repair: %v", what, err)
	}
	if id, err := j.MaxTaskID(); id < frozenTasks || err != nil {
		if _, _, seen := readWitness(filepath.Join(f.dir, witnessFile)); seen == nil && f.sawAll(damage) {
			t.Errorf("%s: numbers go on after task %d (%v), %d were given out", what, id, err, frozenTasks)
		}
	}
	mustCommit(t, j, Batch{Events: events(1, "after"), Tasks: []TaskRow{{ID: 1000}}})
	return true
}

// sawAll reports whether the damage leaves the witness as it was.
func (f *frozen) sawAll(damage func(files map[string][]byte)) bool {
	files := map[string][]byte{}
	for name, b := range f.files {
		files[name] = append([]byte(nil), b...)
	}
	damage(files)
	return string(files[witnessFile]) == string(f.files[witnessFile])
}

func (f *frozen) whole(t *testing.T, what string, j *Journal) {
	t.Helper()
	if _, last, err := j.Bounds(); last != f.acked || err != nil {
		t.Errorf("%s: opened with %d events, %d were acknowledged (%v)", what, last, f.acked, err)
	}
	n, decisions := 0, 0
	for e, err := range j.Events(0) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if want := fmt.Sprintf(`{"id":%d}`, (e.Seq+1)/2); e.Seq%2 == 1 && string(e.Body) != want {
			t.Errorf("%s: event %d is %s, want %s", what, e.Seq, e.Body, want)
		}
		n++
	}
	for _, err := range j.Decisions(0) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		decisions++
	}
	tasks, err := j.Tasks(Filter{})
	open, err2 := j.Tasks(Filter{Unfinished: true, User: "ann"})
	if n != 2*frozenTasks || decisions != frozenTasks || len(tasks) != frozenTasks || len(open) != frozenTasks || errors.Join(err, err2) != nil {
		t.Errorf("%s: opened with %d events, %d decisions, %d tasks, %d open (%v)", what, n, decisions, len(tasks), len(open), errors.Join(err, err2))
	}
	if v, err := j.Meta("instance"); string(v) != "abcd" || err != nil {
		t.Errorf("%s: instance %q (%v)", what, v, err)
	}
}

func flip(name string, bit int) func(map[string][]byte) {
	return func(files map[string][]byte) { files[name][bit/8] ^= 1 << (bit % 8) }
}

// TestBitFlips flips single bits all over the log and the database.
func TestBitFlips(t *testing.T) {
	f := freeze(t, Options{})
	f.flips(t, dataFile+"-wal", 30)
	f = freeze(t, Options{})
	f.stopCleanly(t)
	f.flips(t, dataFile, 100)
}

func (f *frozen) flips(t *testing.T, name string, flips int) {
	t.Helper()
	if raced {
		flips /= 4
	}
	bits, refused := 8*len(f.files[name]), 0
	for i := range flips {
		bit := i*(bits/flips) + rand.IntN(bits/flips)
		if f.check(t, fmt.Sprintf("%s, bit %d of %d", name, bit, bits), flip(name, bit)) {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("no flip of %d in %s was refused", flips, name)
	}
	t.Logf("%s: %d of %d flips refused, the others lost nothing", name, refused, flips)
}

// stopCleanly leaves the journal as a stopped daemon does: all of it is in the
// database.
func (f *frozen) stopCleanly(t *testing.T) {
	t.Helper()
	f.thaw(t, func(map[string][]byte) {})
	if err := mustOpen(t, f.dir).Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dataFile, witnessFile} {
		b, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f.files[name] = b
	}
	delete(f.files, dataFile+"-wal")
}

// TestTruncatedLog cuts the log at each frame, cuts some frames in the middle,
// and removes the log.
func TestTruncatedLog(t *testing.T) {
	f := freeze(t, Options{})
	wal := dataFile + "-wal"
	frame := 24 + int(binary.BigEndian.Uint32(f.files[wal][8:]))
	step := 1
	if raced || testing.Short() {
		step = 8
	}
	for at := 32; at < len(f.files[wal]); at += step * frame {
		if !f.check(t, fmt.Sprintf("log cut at %d", at), func(files map[string][]byte) { files[wal] = files[wal][:at] }) {
			// Frames of an earlier pass that the log still has are stale, and
			// no loss.
			if at+frame < len(f.files[wal])/2 {
				t.Errorf("log cut at byte %d of %d: believed", at, len(f.files[wal]))
			}
		}
		if at%(16*frame) < frame {
			f.check(t, fmt.Sprintf("log cut after %d", at), func(files map[string][]byte) { files[wal] = files[wal][:at+frame/2] })
		}
	}
	if !f.check(t, "log deleted", func(files map[string][]byte) { delete(files, wal) }) {
		t.Error("a deleted log is believed")
	}
	if !f.check(t, "log emptied", func(files map[string][]byte) { files[wal] = nil }) {
		t.Error("an emptied log is believed")
	}
}

// TestDamagedFiles: files that are missing, foreign or cut.
func TestDamagedFiles(t *testing.T) {
	f := freeze(t, Options{})
	for what, damage := range map[string]func(map[string][]byte){
		"database deleted": func(files map[string][]byte) { delete(files, dataFile); delete(files, dataFile+"-wal") },
		"database emptied": func(files map[string][]byte) { files[dataFile] = nil; delete(files, dataFile+"-wal") },
		"database cut": func(files map[string][]byte) {
			files[dataFile] = files[dataFile][:len(files[dataFile])/2]
			delete(files, dataFile+"-wal")
		},
		"database is nonsense": func(files map[string][]byte) {
			files[dataFile] = []byte(strings.Repeat("nonsense ", 1000))
			delete(files, dataFile+"-wal")
		},
		"witness deleted":        func(files map[string][]byte) { delete(files, witnessFile) },
		"witness emptied":        func(files map[string][]byte) { files[witnessFile] = nil },
		"witness is nonsense":    func(files map[string][]byte) { files[witnessFile] = make([]byte, 2*slotSize) },
		"log is another's":       func(files map[string][]byte) { files[dataFile+"-wal"] = []byte(strings.Repeat("log", 4000)) },
		"zeros where a page was": func(files map[string][]byte) { clear(files[dataFile][4096:8192]); delete(files, dataFile+"-wal") },
		"nothing but the database": func(files map[string][]byte) {
			maps.DeleteFunc(files, func(n string, _ []byte) bool { return n != dataFile })
		},
	} {
		if !f.check(t, what, damage) {
			t.Errorf("%s: believed", what)
		}
	}
	if f.check(t, "nothing", func(map[string][]byte) {}) {
		t.Error("an undamaged journal is refused")
	}
	// One slot torn: the other counts.
	torn := func(n int) func(map[string][]byte) {
		return func(files map[string][]byte) { clear(files[witnessFile][n*slotSize+40 : (n+1)*slotSize]) }
	}
	for n := range 2 {
		if f.check(t, fmt.Sprintf("slot %d torn", n), torn(n)) {
			t.Errorf("slot %d torn: refused", n)
		}
	}
}

// TestDamagedRecords changes one row of each table behind the journal's back.
func TestDamagedRecords(t *testing.T) {
	for _, damage := range []string{
		"UPDATE events SET body = x'00' WHERE seq = 7",
		"UPDATE events SET body = x'00' WHERE seq = 119",
		"DELETE FROM events WHERE seq = 30",
		"DELETE FROM events WHERE seq > 118",
		"DELETE FROM events",
		"UPDATE decisions SET body = x'00' WHERE seq = 40",
		"UPDATE tasks SET body = x'00' WHERE id = 1",
		"UPDATE tasks SET phase = 'running' WHERE id = 60",
		"UPDATE tasks SET finished = 1 WHERE id = 60",
		"UPDATE meta SET value = x'00'",
		"UPDATE head SET event = 100, chain = (SELECT sum FROM events WHERE seq = 100)",
		"DELETE FROM head",
	} {
		f := freeze(t, Options{})
		f.thaw(t, func(map[string][]byte) {})
		db, err := connect(f.dir, 1, writerPragmas)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(f.dir, dataFile))
		if err != nil {
			t.Fatal(err)
		}
		if !f.check(t, damage, func(files map[string][]byte) { files[dataFile] = b; delete(files, dataFile+"-wal") }) {
			t.Errorf("%s: believed", damage)
		}
	}
}

// TestOlderCopy: an older database in place of the newer one: alone, with its
// witness, and with its whole folder.
func TestOlderCopy(t *testing.T) {
	run := t.TempDir()
	f := freeze(t, Options{Outside: filepath.Join(run, "witness")})
	f.thaw(t, func(map[string][]byte) {})
	older := f.files
	j, err := OpenWith(f.dir, f.o)
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, j, Batch{Events: events(2, "newer"), Tasks: []TaskRow{{ID: frozenTasks + 1}}})
	newer := f.read(t)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	seen, err := os.ReadFile(f.o.Outside)
	if err != nil {
		t.Fatal(err)
	}
	f.files = newer
	if !f.check(t, "older database", func(files map[string][]byte) {
		files[dataFile], files[dataFile+"-wal"] = older[dataFile], older[dataFile+"-wal"]
	}) {
		t.Error("an older database is believed")
	}
	for _, reboot := range []bool{false, true} {
		if err := os.WriteFile(f.o.Outside, seen, 0o600); err != nil {
			t.Fatal(err)
		}
		if reboot {
			if err := os.Remove(f.o.Outside); err != nil {
				t.Fatal(err)
			}
		}
		f.thaw(t, func(files map[string][]byte) { maps.Copy(files, older) })
		j, err := OpenWith(f.dir, f.o)
		if err == nil {
			err = j.Close()
		}
		if noticed := errors.Is(err, ErrDamaged) && strings.Contains(err.Error(), "set back"); noticed == reboot {
			t.Errorf("the folder set back in place, machine rebooted %v: %v", reboot, err)
		}
	}
}

// TestOtherHistory: a database that continues from the same point, but with other events
// than were written last, as many of them or more.
func TestOtherHistory(t *testing.T) {
	f := freeze(t, Options{})
	goOn := func(kind string, commits int) map[string][]byte {
		f.thaw(t, func(map[string][]byte) {})
		j, err := OpenWith(f.dir, f.o)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		for range commits {
			mustCommit(t, j, Batch{Events: events(1, kind)})
		}
		return f.read(t)
	}
	written := goOn("written", 2)
	for commits := 2; commits <= 3; commits++ {
		other := goOn("other", commits)
		f.thaw(t, func(files map[string][]byte) { maps.Copy(files, other); files[witnessFile] = written[witnessFile] })
		if j, err := OpenWith(f.dir, f.o); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "another history") {
			t.Errorf("with %d other commits: %v", commits, err)
			if err == nil {
				_ = j.Close()
			}
		}
	}
}

// TestCopiedFolder: a copy of all files elsewhere does not count as the
// original.
func TestCopiedFolder(t *testing.T) {
	f := freeze(t, Options{})
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var r *Refusal
	if _, err := Open(dir); !errors.As(err, &r) || !strings.Contains(err.Error(), "is a copy") {
		t.Errorf("a copy of the folder: %v", err)
	}
	moved := f.dir + "-moved"
	if err := os.Rename(f.dir, moved); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, moved) // the same files
}

// TestOthersCanWrite: a folder that others can write to is refused.
func TestOthersCanWrite(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o770, 0o702} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var r *Refusal
		if _, err := Open(dir); !errors.As(err, &r) || r.Fix != "chmod go-w "+dir {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, dir)
	}
	if os.Geteuid() != 0 {
		return
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "chown 0 ") {
		t.Errorf("somebody else's folder: %v", err)
	}
}

// TestOtherPath: the folder is locked also by another path, and without its
// lock file.
func TestOtherPath(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, dir)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link); !errors.Is(err, ErrLocked) {
		t.Errorf("by another path: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("without its lock file: %v", err)
	}
}
