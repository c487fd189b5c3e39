package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

// Config contains the machine and the rules of a replay.
type Config struct {
	Options model.Options
	GPUs    []GPU
	// StartUp is the time from the decision to launch until the container runs. The time
	// of the program before it trains is part of its solo time.
	StartUp time.Duration
	// Timeline makes the run record Result.Timeline.
	Timeline bool
	// Score is the way in which the monitor reports the GPUs' activity. The default is
	// [ScoreMean].
	Score Score
	// Coarse makes the monitor read the share of time in which any kernel runs, as on cards
	// without performance counters.
	Coarse  bool
	Sharing Sharing // of a GPU by several tasks
	// Model predicts the slowdown of tasks that share a GPU. If nil, it is the fitted model,
	// which policy carma uses. Another model shows the cost of wrong predictions.
	Model *Model
	// Suspending describes the suspension of tasks; the zero value means never.
	Suspending Suspending
	// Drain is a GPU that is cordoned for maintenance, or zero for none.
	Drain Drain
	// Truth contains the differences between the modelled world and the scheduler's
	// assumptions.
	Truth Truth
	// Observe, if not nil, is called after every step. It must change nothing and keep no
	// reference to the event.
	Observe func(s *mapper.State, ev model.Event, done []model.Decision)
}

// GPU is one modelled device.
type GPU struct {
	ID     model.GPUID
	Node   string // the machine it is in
	Index  int
	Model  string
	Memory units.Bytes
	// IdlePower and PeakPower are in watts.
	IdlePower, PeakPower float64
	// Speed is the speed of training relative to an A100 40 GB.
	Speed float64
}

// Task is a submission with its true behaviour. The mapper gets only the request and the
// estimate, as from a daemon.
type Task struct {
	At         time.Duration // since the start of the trace
	Name, User string
	// Kind and Family are as in model.Request.
	Kind, Family string
	GPUs         int
	Priority     model.Priority
	Exclusive    bool
	TimeLimit    time.Duration // of an attempt, or 0 for none
	Slot         time.Duration // time that an attempt may run while others wait, or 0 for the option's
	// Checkpoint is the interval of training time, alone on A100s, after which the task
	// saves its state. The next attempt continues from the last checkpoint, after a
	// start-up, which each attempt has. If Checkpoint is 0, the next attempt starts from the
	// beginning.
	Checkpoint time.Duration
	Estimate   model.Estimate
	Expected   model.Expected

	// SoloTime is the time of the whole run alone on A100s.
	SoloTime time.Duration
	// Context is the memory that a process allocates at once on each GPU.
	Context units.Bytes
	// Memory and Loads are the peak memory, context included, and the activity, on each of
	// its GPUs.
	Memory []units.Bytes
	Loads  []Load
}

// Result is the outcome of a replay.
type Result struct {
	Tasks   []TaskResult // in order of arrival
	Metrics Metrics
	Steps   int // number of events passed to the mapper
	// Timeline is nil unless Config.Timeline is set.
	Timeline *Timeline
}

// TaskResult is the outcome of one task. Instants are in the replay's virtual time.
type TaskResult struct {
	ID     model.TaskID
	Task   *Task // as given to Run
	Phase  model.Phase
	Reason string // why it failed
	Record Record
	// GPUs are the indices of the GPUs of its last attempt.
	GPUs []int
	// Pauses is set if the task is idle for a while, see [Truth.Idle].
	Pauses bool
	// EnergyJ is the task's share of the energy of its GPUs, in joules, by package energy,
	// over all attempts.
	EnergyJ float64
}

// maxTime bounds all times of the input.
const maxTime = 10 * 365 * 24 * time.Hour

// origin is the instant at which traces start. It is not 0, because the mapper treats 0
// as "never".
const origin = units.Instant(time.Hour)

// Run replays tasks, in any order, in virtual time: the mapper decides, and the model
// answers with the reports of containers and monitor. Equal input gives an equal result.
// Run fails on invalid input, and if tasks are left that can never start.
func Run(cfg Config, tasks []Task) (Result, error) {
	if err := cfg.check(); err != nil {
		return Result{}, err
	}
	for i := range tasks {
		if err := tasks[i].check(); err != nil {
			return Result{}, fmt.Errorf("task %d (%s): %w", i+1, tasks[i].Name, err)
		}
	}
	order := make([]*Task, len(tasks))
	for i := range tasks {
		order[i] = &tasks[i]
	}
	slices.SortStableFunc(order, func(a, b *Task) int { return cmp.Compare(a.At, b.At) })
	for i, t := range order {
		order[i] = cfg.Truth.task(i, t)
	}
	e := newEngine(cfg, order)
	if err := e.loop(); err != nil {
		return Result{}, err
	}
	return Result{Tasks: e.results, Metrics: e.metrics(), Steps: e.steps, Timeline: e.record.done(e.now)}, nil
}

func (c *Config) check() error {
	if err := mapper.Validate(c.Options); err != nil {
		return err
	}
	if err := c.Score.check(); err != nil {
		return err
	}
	if err := c.Drain.check(c.GPUs); err != nil {
		return err
	}
	if len(c.GPUs) == 0 {
		return fmt.Errorf("no GPUs")
	}
	if c.StartUp < 0 || c.StartUp > maxTime {
		return fmt.Errorf("start-up takes %s; write for example 1s", c.StartUp)
	}
	if _, err := ParseSharing(c.Sharing.String()); err != nil {
		return err
	}
	if err := c.Suspending.check(); err != nil {
		return err
	}
	if err := c.Truth.check(); err != nil {
		return fmt.Errorf("truth: %w", err)
	}
	seen := map[model.GPUID]bool{}
	for _, g := range c.GPUs {
		switch {
		case seen[g.ID]:
			return fmt.Errorf("GPU %s is there twice", g.ID)
		case g.Memory <= 0 || g.Memory > units.TiB*1024:
			return fmt.Errorf("GPU %s has %d bytes of memory", g.ID, g.Memory)
		case !(g.Speed >= 1e-3 && g.Speed <= 1e3):
			return fmt.Errorf("GPU %s has speed %v; an A100 has 1", g.ID, g.Speed)
		case !(g.IdlePower >= 0 && g.PeakPower >= g.IdlePower && g.PeakPower <= 1e6):
			return fmt.Errorf("GPU %s draws %v W idle and %v W at most", g.ID, g.IdlePower, g.PeakPower)
		}
		seen[g.ID] = true
	}
	return nil
}

func (t *Task) check() error {
	switch {
	case t.At < 0 || t.At > maxTime:
		return fmt.Errorf("arrives at %s", t.At)
	case t.Checkpoint < 0 || t.Checkpoint > maxTime || t.Slot < 0 || t.Slot > maxTime:
		return fmt.Errorf("saves its state every %s, has a slot of %s", t.Checkpoint, t.Slot)
	case t.SoloTime < time.Millisecond || t.SoloTime > maxTime:
		return fmt.Errorf("runs for %s", t.SoloTime)
	case t.GPUs < 1 || len(t.Memory) != t.GPUs || len(t.Loads) != t.GPUs:
		return fmt.Errorf("wants %d GPUs, has memory on %d and loads on %d", t.GPUs, len(t.Memory), len(t.Loads))
	case t.Context < 0 || slices.Min(t.Memory) < 0 || slices.Max(t.Memory) > units.TiB*1024:
		return fmt.Errorf("uses %d bytes, context %d", slices.Max(t.Memory), t.Context)
	}
	for _, l := range t.Loads {
		if !(min(l.SMACT, l.SMOCC, l.DRAMA) >= 0 && max(l.SMACT, l.SMOCC, l.DRAMA) <= 1) || math.IsNaN(l.Step) {
			return fmt.Errorf("has a load of %+v", l)
		}
	}
	return nil
}
