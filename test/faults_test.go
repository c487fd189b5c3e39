//go:build e2e && failpoints

package test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/internal/units"

	"carma/runner/api"
)

// fault is something that goes wrong, and its expected outcome.
type fault struct {
	name    string
	own     bool     // it needs its own engine
	engine  []string // arguments of that engine; --live-restore if nil
	card    bool     // it needs a GPU of the NVML stand-in, on its own engine
	clock   bool     // it sets the daemon's clock
	disk    string   // size of the data folder's own disk, or empty if it has none
	excused bool     // it ends the running tasks, which run again
	// inject makes the fault happen and ends it. It returns a text for the
	// table's last column.
	inject func(l *lab) string
}

var faults = slices.Concat(engineFaults, journalFaults, machineFaults, loadFaults)

// TestFaults injects one fault after the other, each under its own daemon with
// running tasks. It prints how many tasks were at stake, lost and doubled, and
// how long it took until a new task ran to its end. FAULT in the environment
// selects faults.
func TestFaults(t *testing.T) {
	needRoot(t)
	var mu sync.Mutex
	var table bytes.Buffer
	fmt.Fprintf(&table, "\n%-36s %6s %5s %8s %10s  %s\n", "fault", "stake", "lost", "doubled", "goes on in", "what came of it")
	for _, f := range faults {
		if !strings.Contains(f.name, os.Getenv("FAULT")) {
			continue
		}
		t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
			l := f.bench(t)
			l.up()
			stake := l.stake(f.card)
			words := f.inject(l)
			begun := time.Now()
			l.submit(program("proof", "exit:0"))
			l.ends("proof", "succeeded")
			went := time.Since(begun)
			if f.excused {
				l.excused += len(stake)
			}
			lost, doubled := l.startedOnce()
			lost += l.stillRun(stake)
			l.term()
			l.verify()
			mu.Lock()
			fmt.Fprintf(&table, "%-36s %6d %5d %8d %10s  %s\n", f.name, len(stake)+l.more, lost, doubled, went.Round(10*time.Millisecond), words)
			mu.Unlock()
		})
	}
	fmt.Print(table.String())
	fmt.Printf("%s; %s\n", engineVersion("dockerd"), engineVersion("containerd"))
}

// bench prepares a daemon and everything that the fault needs.
func (f fault) bench(t *testing.T) *lab {
	var e *dockerd
	if f.own || f.card { // before the lab, which cleans up on this engine
		e = newDockerd(t)
	}
	l := newLab(t)
	l.builds, l.options = l.builds[:1], l.options[:1]
	if f.disk != "" {
		l.mount(f.disk)
	}
	if e != nil {
		e.args = f.engine
		if f.engine == nil {
			e.args = []string{"--live-restore"}
		}
		if f.card {
			e.args = append(e.args, "--add-runtime", "nvidia="+lookPath(t, "runc")) // there is no device to attach
		}
		e.start()
		e.copyImage(tool)
		l.useEngine(e)
		l.witness, l.own = e, e
	}
	if f.card {
		l.useCard()
	}
	if f.clock {
		l.useClock()
	}
	return l
}

// stake submits the tasks that run while a fault happens. One grant shrinks, one
// grows, and one task waits for its stop. On the stand-in's card no memory is
// used, so three tasks wait there, one with a time limit.
func (l *lab) stake(card bool) []string {
	l.t.Helper()
	names := []string{"shrinks", "grows", "blocks"}
	if card {
		names = []string{"limited", "other", "blocks"}
		limited := program("limited", "out:here", "block:143")
		limited.TimeLimit = time.Hour
		l.submit(limited)
		l.submit(program("other", "out:here", "block:143"))
	} else {
		l.submit(train("shrinks", 30*units.GiB, "resnet50-imagenet-bs64", "--time", "9000h"))
		l.submit(train("grows", 5*units.GiB, "mnist-cnn-bs64-14e", "--peak", "12G", "--time", "9000h"))
	}
	l.submit(program("blocks", "out:here", "block:143"))
	if !card {
		l.sees("shrinks", "its grant shrinks", func(t api.Task) bool { return grant(t) < 10*units.GiB })
		l.sees("grows", "its grant grows", func(t api.Task) bool { return grant(t) > 12*units.GiB })
	}
	l.isRunning(names...)
	return names
}

// stillRun returns how many of the tasks have ended; none should have.
func (l *lab) stillRun(names []string) (ended int) {
	l.t.Helper()
	for _, name := range names {
		t := l.sees(name, "it runs", func(t api.Task) bool { return t.Phase == "running" || t.Finished() })
		if t.Finished() {
			ended++
			l.t.Errorf("task %s has %s: %s", name, t.Phase, t.Reason)
		}
	}
	return ended
}
