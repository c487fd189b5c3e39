//go:build e2e && failpoints

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"carma/mapper"
	"carma/runner/api"
)

// fault is something that goes wrong, and what is to come of it.
type fault struct {
	name string
	own  bool // it needs an engine of its own
	// inject lets it happen and ends it; what it returns is for the table's last
	// column.
	inject func(l *lab) string
}

// stake are the tasks that run while a fault happens: one grant shrinks, one
// grows, one prints without end.
var stake = []string{"shrinks", "grows", "blocks"}

// TestFaults injects one fault after the other, each under a daemon of its own
// with running tasks, and prints what was at stake, lost, doubled, and how long
// it took until a new task ran to its end. FAULT in the environment selects.
func TestFaults(t *testing.T) {
	needRoot(t)
	var mu sync.Mutex
	var table bytes.Buffer
	fmt.Fprintf(&table, "\n%-42s %6s %5s %8s %12s  %s\n", "fault", "stake", "lost", "doubled", "goes on in", "what came of it")
	for _, f := range faults {
		if !strings.Contains(f.name, os.Getenv("FAULT")) {
			continue
		}
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			var e *dockerd
			if f.own { // before the lab, which cleans up on it
				e = newDockerd(t)
			}
			l := newLab(t)
			l.builds, l.options = l.builds[:1], l.options[:1]
			if f.own {
				e.args = []string{"--live-restore"}
				e.start()
				e.copyImage(tool)
				l.useEngine(e)
				l.witness, l.own = e.watch(), e
			}
			l.up()
			l.submit(train("shrinks", 30*mapper.GiB, "resnet50-imagenet-bs64", "--time", "9000h"))
			l.submit(train("grows", 5*mapper.GiB, "mnist-cnn-bs64-14e", "--peak", "12G", "--time", "9000h"))
			l.submit(program("blocks", "out:here", "block:143"))
			l.sees("shrinks", "its grant shrinks", func(t api.Task) bool { return grant(t) < 10*mapper.GiB })
			l.sees("grows", "its grant grows", func(t api.Task) bool { return grant(t) > 12*mapper.GiB })
			l.isRunning(stake...)
			words := f.inject(l)
			begun := time.Now()
			l.submit(program("proof", "exit:0"))
			l.ends("proof", "succeeded")
			went := time.Since(begun)
			l.isRunning(stake...)
			lost, doubled := l.startedOnce()
			mu.Lock()
			fmt.Fprintf(&table, "%-42s %6d %5d %8d %12s  %s\n", f.name, len(stake)+l.more, lost, doubled, went.Round(10*time.Millisecond), words)
			mu.Unlock()
		})
	}
	fmt.Print(table.String())
	fmt.Printf("%s; %s\n", engineVersion("dockerd"), engineVersion("containerd"))
}

var faults = []fault{
	{name: "daemon killed ten times", inject: func(l *lab) string {
		for range 10 {
			l.kill()
			l.up()
		}
		return "adopted"
	}},
	{name: "engine killed", own: true, inject: func(l *lab) string {
		l.own.kill()
		l.own.start()
		l.unseen = 1
		return "containers go on (live-restore)"
	}},
	{name: "engine hung for 10 s", own: true, inject: func(l *lab) string {
		_ = l.own.cmd.Process.Signal(unix.SIGSTOP)
		time.Sleep(10 * time.Second)
		_ = l.own.cmd.Process.Signal(unix.SIGCONT)
		return "nothing noticed by the tasks"
	}},
	{name: "engine and daemon killed together", own: true, inject: func(l *lab) string {
		l.kill()
		l.own.kill()
		l.own.start()
		l.up()
		l.unseen = 1
		return "adopted"
	}},
	{name: "container paused", inject: func(l *lab) string {
		id := l.container("blocks")
		if _, err := l.engine.cli.ContainerPause(l.t.Context(), id, client.ContainerPauseOptions{}); err != nil {
			l.t.Fatal(err)
		}
		l.kill()
		l.up()
		l.isRunning("blocks")
		if _, err := l.engine.cli.ContainerUnpause(l.t.Context(), id, client.ContainerUnpauseOptions{}); err != nil {
			l.t.Fatal(err)
		}
		return "adopted while paused"
	}},
	{name: "container removed from outside", inject: func(l *lab) string {
		l.submit(program("victim", "block:143"))
		l.isRunning("victim")
		if _, err := l.engine.cli.ContainerRemove(l.t.Context(), l.container("victim"), client.ContainerRemoveOptions{Force: true}); err != nil {
			l.t.Fatal(err)
		}
		return l.fate("victim")
	}},
	{name: "container killed from outside", inject: func(l *lab) string {
		l.submit(program("victim", "block:143"))
		l.isRunning("victim")
		if _, err := l.engine.cli.ContainerKill(l.t.Context(), l.container("victim"), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			l.t.Fatal(err)
		}
		return l.fate("victim")
	}},
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
	{name: "10,000 connections", inject: func(l *lab) string {
		var limit unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		var held []net.Conn
		refusedAt := 0
		for i := range 10_000 {
			c, err := net.DialTimeout("unix", l.socket, time.Second)
			if err != nil {
				refusedAt = i
				break
			}
			held = append(held, c)
		}
		l.submit(program("meanwhile", "exit:0"))
		l.ends("meanwhile", "succeeded")
		for _, c := range held {
			_ = c.Close()
		}
		if refusedAt > 0 {
			return fmt.Sprintf("%d held; submissions work", refusedAt)
		}
		return "held; submissions work"
	}},
	{name: "log flood of 3,000,000 lines", inject: func(l *lab) string {
		l.submit(program("flood", "lines:1500000", "exit:0"))
		l.ends("flood", "succeeded")
		return "what is not kept is noted"
	}},
	{name: "5,000 submissions at once", inject: func(l *lab) string {
		var failed atomic.Int64
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				c := api.NewClient(l.socket)
				for j := range 50 {
					s := program(fmt.Sprintf("many-%d-%d", i, j), "exit:0")
					s.Delay = 24 * 365 * time.Hour // they are to be kept, not run
					if _, err := c.Submit(context.Background(), s); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		all.Wait()
		l.more = 5000
		l.kill()
		l.up()
		list, err := l.api.Info(l.t.Context())
		_ = list
		if err != nil || failed.Load() > 0 {
			l.t.Errorf("%d submissions failed (%v)", failed.Load(), err)
		}
		for _, name := range []string{"many-0-0", "many-99-49", "many-50-25"} {
			l.sees(name, "it is there", func(api.Task) bool { return true })
		}
		return "all there after kill -9"
	}},
}

// container is the engine's id of a task's last attempt.
func (l *lab) container(name string) string {
	l.t.Helper()
	task := l.sees(name, "its start", func(t api.Task) bool { return t.Phase == "running" })
	for _, c := range l.engine.of(l.instance()) {
		if int64(c.task) == task.ID && c.attempt == len(task.Attempts) {
			return c.id
		}
	}
	l.t.Fatalf("no container of %s", name)
	return ""
}

// fate waits for what becomes of a task whose container somebody took away: it
// either runs again or says whose doing it was. It does not count as lost.
func (l *lab) fate(name string) string {
	l.t.Helper()
	task := l.sees(name, "its fate", func(t api.Task) bool { return t.Finished() || len(t.Attempts) > 1 && t.Phase == "running" })
	first := task.Attempts[0]
	l.excused++
	return fmt.Sprintf("attempt 1 %s, task %s", first.Outcome, task.Phase)
}

// damaged kills the daemon, damages the write-ahead log and wants a refusal.
// Then it puts the journal back.
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

// refused starts the daemon, which must end by itself and say why.
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
	log := strings.TrimSpace(l.log.String()[l.life:])
	last := log[strings.LastIndexByte(log, '\n')+1:]
	return "refused: " + last[:min(len(last), 110)]
}

// copyJournal copies the files of the journal aside; putJournal puts them back.
func (l *lab) copyJournal(name string) (dir string) {
	l.t.Helper()
	dir = filepath.Join(l.root, name)
	copyFiles(l.t, l.dir, dir)
	return dir
}

func (l *lab) putJournal(from string) {
	l.t.Helper()
	files, _ := filepath.Glob(filepath.Join(l.dir, "carma.db*"))
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			l.t.Fatal(err)
		}
	}
	copyFiles(l.t, from, l.dir)
}

// copyFiles copies the journal's files, and no more: the witness that stands
// beside them is not part of a copy that somebody makes.
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
