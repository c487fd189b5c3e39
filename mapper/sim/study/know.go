package study

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"carma/internal/suggest"
	"carma/mapper/model"
	"carma/mapper/sim"
)

// Know selects the scheduler's knowledge of tasks before they run.
type Know string

// A site that installs carma starts with KnowNothing. KnowAll is a catalogue that
// contains all of the site's models.
const (
	KnowAll     Know = "all"     // memory by the row's estimator, run time and activity by the catalogue
	KnowMemory  Know = "memory"  // memory by the row's estimator, and nothing else
	KnowNothing Know = "nothing" // not even the memory
)

// Knows lists the choices, the default first.
var Knows = []string{string(KnowAll), string(KnowMemory), string(KnowNothing)}

// before returns a task as known to the scheduler before it runs. With estimator none the
// memory is unknown anyway, so presets that rely only on recovery stay unchanged.
func (k Know) before(t sim.Task, estimator string) sim.Task {
	if k == KnowMemory || k == KnowNothing {
		t.Expected, t.Family = model.Expected{}, ""
	}
	if k == KnowNothing && estimator != "none" {
		t.Estimate = model.Estimate{WholeGPU: true}
	}
	return t
}

// alone gives a task a unique kind, so that nothing is learned from other tasks.
func alone(t sim.Task, i int) sim.Task {
	t.Kind = fmt.Sprintf("%s/%d", t.Kind, i)
	return t
}

// Conditions contains the knowledge of tasks, and the differences between the modelled
// world and the scheduler's assumptions.
type Conditions struct {
	Know     Know
	Distinct bool
	Truth    sim.Truth
	Sharing  sim.Sharing
	// Coarse is set if the GPUs have no performance counters, so that the monitor reads the
	// share of time in which any kernel runs.
	Coarse bool
	// Suspending describes how GPUs suspend tasks. Urgent is the share of the tasks with
	// high priority, while the others have at most normal priority; 0 keeps the trace's
	// priorities.
	Suspending sim.Suspending
	Urgent     float64
	// Drain is the maintenance of a GPU.
	Drain sim.Drain
}

// Set sets a condition by its name in files of bounds and in JSON.
func (c *Conditions) Set(name, value string) (err error) {
	switch name {
	case "know":
		c.Know, err = Know(value), oneOf(name, value, Knows)
	case "repeats":
		c.Distinct, err = value == "false", oneOf(name, value, []string{"true", "false"})
	case "coarse":
		c.Coarse, err = value == "true", oneOf(name, value, []string{"true", "false"})
	case "sharing":
		if err = oneOf(name, value, sim.SharingNames()); err == nil {
			c.Sharing, err = sim.ParseSharing(value)
		}
	case "suspend":
		c.Suspending, err = parsed(name, value, ParseSuspending)
	case "urgent":
		c.Urgent, err = parsed(name, value, ParseUrgent)
	case "drain":
		c.Drain, err = parsed(name, value, ParseDrain)
	case "truth":
		c.Truth, err = parsed(name, value, ParseTruth)
	}
	return err
}

// parsed returns a value, or an error that begins with its name.
func parsed[T any](name, value string, parse func(string) (T, error)) (T, error) {
	v, err := parse(value)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return v, err
}

// oneOf returns an error for a word that is not in a list.
func oneOf(what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("unknown %s %q; nearest: %s", what, word, suggest.Names(word, words, 1)[0])
}

// Under sets the conditions of the study.
func (s *Study) Under(c Conditions) {
	s.Know, s.Distinct, s.Truth, s.Sharing, s.Coarse = c.Know, c.Distinct, c.Truth, c.Sharing, c.Coarse
	s.Suspending, s.Urgent, s.Drain = c.Suspending, c.Urgent, c.Drain
}

// Conditions returns the conditions of the study.
func (s *Study) Conditions() Conditions {
	return Conditions{cmp.Or(s.Know, KnowAll), s.Distinct, s.Truth, s.Sharing, s.Coarse, s.Suspending, s.Urgent, s.Drain}
}

// Words describes the differences from the default conditions: all tasks are known, on
// GPUs that behave as the model predicts.
func (c Conditions) Words() []string {
	var list []string
	switch c.Know {
	case KnowMemory:
		list = append(list, "only the memory of the tasks is known")
	case KnowNothing:
		list = append(list, "nothing is known of the tasks")
	}
	if c.Distinct {
		list = append(list, "no task repeats another")
	}
	if c.Sharing != sim.MPS {
		list = append(list, fmt.Sprintf("tasks share a GPU by %s, not %s", c.Sharing, sim.MPS))
	}
	if c.Coarse {
		list = append(list, "GPUs tell their activity coarsely")
	}
	if truth := c.Truth.String(); truth != (sim.Truth{}).String() {
		list = append(list, "truth "+truth)
	}
	if text := suspendingText(c.Suspending); text != "" {
		list = append(list, "tasks can be suspended, "+text)
	}
	if c.Urgent > 0 {
		list = append(list, fmt.Sprintf("%s %% of the tasks are urgent", strconv.FormatFloat(100*c.Urgent, 'g', 4, 64)))
	}
	if text := c.DrainText(); text != "" {
		list = append(list, "a GPU is drained, "+text)
	}
	return list
}

// SuspendText returns the setting for suspensions as users type it, or "" if GPUs cannot
// suspend tasks.
func (c Conditions) SuspendText() string { return suspendingText(c.Suspending) }

// worldOf returns the truth for one trace. Each trace has its own draws, independent of
// the other traces.
func (s *Study) worldOf(trace string) sim.Truth {
	t := s.Truth
	h := fnv.New64a()
	fmt.Fprint(h, trace)
	t.Seed += h.Sum64()
	return t
}
