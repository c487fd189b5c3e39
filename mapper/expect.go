package mapper

import (
	"time"

	"carma/mapper/units"

	"carma/mapper/interference"
)

// Expected is what is known about a task's run before it starts, except its
// memory.
type Expected struct {
	// Loads are the task's activity on each of its GPUs when it is alone there.
	// The last stands for further GPUs. Empty: not known.
	Loads []interference.Load `json:"loads,omitempty"`
	// RunTime is how long runs of its model typically take alone; 0: not known.
	RunTime time.Duration `json:"run_time,omitempty"`
	// Source tells where they come from, for people.
	Source string `json:"source,omitempty"`
}

// unknownLoad is the activity assumed for a task without history: that of the
// training of a large network. Once the task has run for a while, what the
// monitor has seen replaces it.
var unknownLoad = interference.Load{SMACT: 0.7, SMOCC: 0.3, DRAMA: 0.3}

// load is the expected activity of a task on its i-th GPU.
func (t *Task) load(i int) interference.Load {
	if n := len(t.Expected.Loads); n > 0 {
		return t.Expected.Loads[min(i, n-1)]
	}
	return unknownLoad
}

// basis is what an expected run time rests on.
type basis int

const (
	known   basis = iota // earlier runs of the same task
	typical              // runs of the same model
	guessed              // nothing about the task itself
)

// unknownRun is the run time assumed while no run of any task is known.
const unknownRun = 30 * time.Minute

// runTime is how long a task is expected to take alone: the mean of its
// earlier runs, else what its model typically takes, else the mean of the
// earlier runs of its family, else of all.
func (s *State) runTime(t *Task) (time.Duration, basis) {
	r := &t.notes.run
	if r.learned != s.notes.learned || r.learned == 0 {
		r.learned = s.notes.learned
		r.time, r.basis = s.findRunTime(t)
	}
	return r.time, r.basis
}

// expectedRun is what runTime remembers.
type expectedRun struct {
	learned int // notes.learned when it was found; 0: never
	time    time.Duration
	basis   basis
}

func (s *State) findRunTime(t *Task) (time.Duration, basis) {
	if e := s.history.of(t.Kind); e.known() {
		return e.RunTime, known
	}
	if t.Expected.RunTime > 0 {
		return t.Expected.RunTime, typical
	}
	var family, all mean
	for _, e := range s.history {
		if !e.known() {
			continue
		}
		all.add(e.RunTime)
		if e.Family == t.Family && t.Family != "" {
			family.add(e.RunTime)
		}
	}
	switch {
	case family.n > 0:
		return family.of(), typical
	case all.n > 0:
		return all.of(), guessed
	}
	return unknownRun, guessed
}

// mean is one of times; in seconds, as their sum may be more than a Duration
// holds.
type mean struct {
	seconds float64
	n       int
}

func (m *mean) add(d time.Duration) { m.seconds += d.Seconds(); m.n++ }

func (m *mean) of() time.Duration {
	return time.Duration(m.seconds / float64(m.n) * float64(time.Second))
}

// watch adds the activity of a GPU to what is known about the one task there. It
// uses the scores that were valid up to now, so call it before they change.
func (s *State) watch(g *GPU) {
	if len(g.Residents) != 1 || !s.settled(g) {
		return
	}
	r := &g.Residents[0]
	r.Seen.add(g, max(r.Seen.Until, g.ChangedAt.Add(settling)), s.now)
}

// acquaint sets the load of tasks without history. Once the tasks on a GPU have
// been the same for a while, it subtracts the expected activity of the known
// tasks from what the monitor sees, and shares the rest equally among the others.
func (s *State) acquaint() {
	for _, g := range s.gpus {
		if g.SeenAt == g.ChangedAt || !s.settled(g) || g.idle() {
			continue
		}
		g.SeenAt = g.ChangedAt
		rest := interference.Load{SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA}
		if r := &g.Residents[0]; len(g.Residents) == 1 && g.SMACT > r.Load.SMACT+surprise && g.Foreign == 0 {
			rest.Step = r.Load.Step // no sample shows the length of a step
			r.Load = rest
			g.forget()
			continue
		}
		var unknowns []*Resident
		for i := range g.Residents {
			r := &g.Residents[i]
			if len(s.tasks[r.Task].Expected.Loads) == 0 {
				unknowns = append(unknowns, r)
				continue
			}
			rest.SMACT -= r.Load.SMACT * r.Speed
			rest.SMOCC -= r.Load.SMOCC * r.Speed
			rest.DRAMA -= r.Load.DRAMA * r.Speed
		}
		for _, r := range unknowns {
			part := r.Speed * float64(len(unknowns))
			r.Load = interference.Load{SMACT: max(unknownLeast, score(rest.SMACT/part)), SMOCC: score(rest.SMOCC / part), DRAMA: score(rest.DRAMA / part)}
		}
		if len(unknowns) > 0 {
			g.forget()
		}
	}
}

// surprise: if a task that is alone shows this much more SM activity than
// expected, what is seen replaces what was known. Less activity than expected
// changes nothing, because the task may have paused to read data.
const surprise = 0.05

// unknownLeast is the least SM activity assumed for a task without history, for
// the same reason.
const unknownLeast = 0.10

// settled reports whether the tasks on a GPU have been the same for so long that
// the samples show only them.
func (s *State) settled(g *GPU) bool { return s.now >= g.ChangedAt.Add(settling) }

// settling is the time from a change on a GPU until the samples count: the
// monitor's window of 30 s, and as much for a task to begin its work.
const settling = time.Minute

// sightings are the activity that samples have shown of one task, summed over
// time.
type sightings struct {
	Seconds float64       `json:"seconds,omitempty"`
	SMACT   float64       `json:"smact,omitempty"`
	SMOCC   float64       `json:"smocc,omitempty"`
	DRAMA   float64       `json:"drama,omitempty"`
	Until   units.Instant `json:"until,omitempty"`
}

func (v *sightings) add(g *GPU, from, to units.Instant) {
	if to <= from {
		return
	}
	dt := to.Sub(from).Seconds()
	v.Seconds += dt
	v.SMACT += g.SMACT * dt
	v.SMOCC += g.SMOCC * dt
	v.DRAMA += g.DRAMA * dt
	v.Until = to
}

// sightings are the activity that a task, which ends now, was seen to have on
// each of its GPUs. They are empty unless it was alone on all of them for a while.
func (s *State) sightings(t *Task) (all []interference.Load) {
	for _, grant := range t.Current().Grants {
		g := s.byID[grant.GPU]
		s.watch(g)
		r := g.resident(t.ID)
		n := r.Seen.Seconds
		if n < aloneLeast {
			return nil
		}
		all = append(all, interference.Load{
			SMACT: r.Seen.SMACT / n, SMOCC: r.Seen.SMOCC / n, DRAMA: r.Seen.DRAMA / n,
			Step: r.Load.Step, // no sample shows the length of a step
		})
	}
	return all
}

// aloneLeast is how many seconds a task must have been seen alone before its
// activity is kept in the history.
const aloneLeast = 300
