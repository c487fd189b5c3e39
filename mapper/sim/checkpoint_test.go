package sim

import (
	"testing"
	"time"

	"carma/internal/units"
)

// TestSlots checks that two tasks that do not fit beside each other take turns. With
// checkpoints no saved work is repeated.
func TestSlots(t *testing.T) {
	opt := options("magm")
	opt.Slot = time.Hour
	run := func(every time.Duration, solo ...time.Duration) Result {
		var tasks []Task
		for _, d := range solo {
			task := training(0, d, 30*units.GiB, small)
			task.Checkpoint = every
			tasks = append(tasks, task)
		}
		return mustRun(t, Config{Options: opt, GPUs: station(1), StartUp: time.Second}, tasks)
	}
	lastEnd := func(r Result) (end units.Instant) {
		for _, task := range r.Tasks {
			if !task.Record.Succeeded {
				t.Fatalf("%s: %s", task.Phase, task.Reason)
			}
			end = max(end, task.Record.Ended)
		}
		return end
	}
	r := run(10*time.Minute, 3*time.Hour, 2*time.Hour)
	if n := len(r.Tasks[0].Record.Attempts); n < 3 {
		t.Errorf("a task of three hours had %d turns of an hour", n)
	}
	if took := lastEnd(r).Sub(origin); took < 5*time.Hour || took > 6*time.Hour {
		t.Errorf("five hours of work with checkpoints took %s", took)
	}
	// A slot ends after 50 minutes of work at most: all of it counts except the work
	// since the last checkpoint, so a longer interval between checkpoints costs more.
	if rare := run(40*time.Minute, 3*time.Hour, 2*time.Hour); lastEnd(rare) <= lastEnd(r) {
		t.Errorf("checkpoints every 40 minutes take %s, every 10 %s", lastEnd(rare).Sub(origin), lastEnd(r).Sub(origin))
	}
	// Without a waiting task no task is stopped.
	if alone := run(0, 3*time.Hour); len(alone.Tasks[0].Record.Attempts) != 1 {
		t.Error("a task was stopped for nobody")
	}
	// Without checkpoints a task that fits its slot runs in one attempt; the other starts
	// from the beginning, until no task waits any more.
	if r := run(0, 3*time.Hour, 30*time.Minute); len(r.Tasks[0].Record.Attempts) != 2 || len(r.Tasks[1].Record.Attempts) != 1 {
		t.Errorf("%d and %d attempts", len(r.Tasks[0].Record.Attempts), len(r.Tasks[1].Record.Attempts))
	}
}

// TestCheckpointOfOOM checks that a task that runs out of memory continues from its
// checkpoint.
func TestCheckpointOfOOM(t *testing.T) {
	e := newEngine(Config{Options: options("magm"), GPUs: station(1)}, []*Task{{SoloTime: time.Hour, Checkpoint: 7 * time.Minute}})
	r := &run{id: 1, task: e.tasks[0], trained: 1000, goal: 3000, rate: 0.5, at: e.now}
	e.now = e.now.Add(1000 * time.Second)
	e.save(r) // 1000 s, half of another 1000 s, less 8 s of start-up
	if e.saved[0] != 1260 {
		t.Errorf("saved %v seconds, want 3 x 7 minutes", e.saved[0])
	}
}
