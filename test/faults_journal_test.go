//go:build e2e && failpoints

package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// journalFaults happen to the data that the daemon has stored.
var journalFaults = []fault{
	{name: "WAL truncated by half", inject: damaged(func(l *lab, wal string) {
		info, err := os.Stat(wal)
		if err == nil {
			err = os.Truncate(wal, info.Size()/2)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	})},
	{name: "WAL with a flipped bit", inject: damaged(func(l *lab, wal string) {
		b := readFile(l.t, wal)
		b[len(b)/2] ^= 4
		writeFile(l.t, wal, b)
	})},
	{name: "WAL deleted", inject: damaged(func(l *lab, wal string) {
		if err := os.Remove(wal); err != nil {
			l.t.Fatal(err)
		}
	})},
	{name: "older copy restored", inject: func(l *lab) string {
		l.kill()
		old := l.copyJournal("older")
		l.up()
		l.submit(program("newer", "block:143"))
		l.isRunning("newer")
		l.kill()
		kept := l.copyJournal("kept")
		l.putJournal(old)
		words := l.refused()
		l.putJournal(kept)
		l.up()
		l.isRunning("newer")
		return words
	}},
	{name: "disk full at every write", disk: "16m", inject: fullAtEveryWrite},
}

// damaged kills the daemon, damages the write-ahead log, expects a refusal, and
// restores the journal.
func damaged(f func(l *lab, wal string)) func(l *lab) string {
	return func(l *lab) string {
		l.kill()
		kept := l.copyJournal("kept")
		f(l, filepath.Join(l.dir, "carma.db-wal"))
		words := l.refused()
		l.putJournal(kept)
		l.up()
		return words
	}
}

// refused starts the daemon, which must exit and say why.
func (l *lab) refused() string {
	l.t.Helper()
	l.launch()
	select {
	case <-l.exited:
	case <-time.After(20 * time.Second):
		l.kill()
		l.t.Error("the daemon started on a damaged journal")
		return "NOT NOTICED"
	}
	l.cmd = nil
	words := "refused: "
	for line := range strings.Lines(l.log.String()[l.life:]) {
		if said, ok := strings.CutPrefix(line, "carma daemon: "); ok {
			words += strings.TrimSpace(said)
		}
		if strings.Contains(line, "to go on: carma journal repair") {
			return words + "; carma journal repair goes on, or the journal put back"
		}
	}
	l.keepLog()
	l.t.Error("the refusal does not name the command that goes on")
	return words
}

// copyJournal copies the journal's files to a new folder; putJournal copies them
// back.
func (l *lab) copyJournal(name string) (dir string) {
	l.t.Helper()
	dir = filepath.Join(l.root, name)
	copyFiles(l.t, l.dir, dir)
	return dir
}

// putJournal writes into the existing files, like cp. In new files the journal
// would correctly count as a copy.
func (l *lab) putJournal(from string) {
	l.t.Helper()
	files, _ := filepath.Glob(filepath.Join(l.dir, "carma.db-*"))
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			l.t.Fatal(err)
		}
	}
	copyFiles(l.t, from, l.dir)
}

// copyFiles copies only the journal's own files. The witness file beside them
// does not belong to a copy that somebody makes.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(from, "carma.db*"))
	if len(files) == 0 {
		t.Fatal(errors.New("there is no journal in " + from))
	}
	for _, f := range files {
		b := readFile(t, f)
		if err := os.WriteFile(filepath.Join(to, filepath.Base(f)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// fullAtEveryWrite fills the disk again and again, with one more free block each
// time. So the disk is full at each write of a submission, a start, a stop and an
// end. Then the daemon is killed and started on the full disk.
func fullAtEveryWrite(l *lab) string {
	const rounds, block = 24, 4096
	accepted, refused := 0, 0
	for room := range rounds {
		victim := fmt.Sprint("victim-", room)
		l.submit(program(victim, "block:143"))
		l.isRunning(victim)
		filler := l.fill()
		info, err := os.Stat(filler)
		if err == nil {
			err = os.Truncate(filler, max(0, info.Size()-int64(room*block)))
		}
		if err != nil {
			l.t.Fatal(err)
		}
		var names []string
		for i := range 4 {
			name := fmt.Sprintf("full-%d-%d", room, i)
			s := program(name, "out:hello", "exit:0")
			s.Env = []string{"PAD=" + strings.Repeat("x", 2*block)}
			if _, err := l.api.Submit(l.t.Context(), s); err == nil {
				names = append(names, name)
			} else if refused++; !strings.Contains(err.Error(), "full") {
				l.t.Errorf("with %d blocks: %v", room, err)
			}
		}
		if _, err := l.api.Stop(l.t.Context(), victim, api.StopRequest{Now: true}); err != nil {
			l.t.Errorf("with %d blocks, stop: %v", room, err)
		}
		if room%3 > 0 {
			l.ends(victim, "cancelled")
		}
		l.kill()
		l.up()
		l.ends(victim, "cancelled")
		if err := os.Remove(filler); err != nil {
			l.t.Fatal(err)
		}
		for _, name := range names {
			l.ends(name, "succeeded")
		}
		accepted += len(names)
		l.tell()
	}
	return fmt.Sprintf("%d times, a block more each time: %d submissions accepted and done, %d refused; all stops done", rounds, accepted, refused)
}
