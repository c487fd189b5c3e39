package mapper

import (
	"time"

	"carma/internal/units"
)

const (
	// idleMost is the SM activity up to which a GPU does nothing: what is left when
	// a sample is rounded.
	idleMost = 0.02
	// idleWarning is how long before its end a task is warned that is to be stopped
	// for doing nothing; a quarter of its idle stop, if that is less.
	idleWarning = 10 * time.Minute
)

// TerminalInput says that somebody has typed into a task's terminal, or has run a command
// in the task.
type TerminalInput struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
}

func (e TerminalInput) when() units.Instant { return e.At }
func (TerminalInput) kind() string          { return "touched" }
func (e TerminalInput) about() TaskID       { return e.Task }

// Idle says that a running task does nothing, for the record. It is told when that
// has lasted for a while, when the task is warned, and when it is over.
type Idle struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
	// Since is since when; 0: it does something again.
	Since units.Instant `json:"since"`
	// Ends is when the task will be stopped for it; 0: not, or not yet known.
	Ends units.Instant `json:"ends,omitempty"`
	// Unused: it has never had memory on its GPUs.
	Unused bool `json:"unused,omitempty"`
}

func (Idle) decisionKind() string { return "idle" }

// Idleness is what is known of a running task that does nothing.
type Idleness struct {
	// Since is since when none of its GPUs has done anything for it, and nobody has
	// typed into its terminal; 0: it works, or that is not known.
	Since units.Instant `json:"since,omitempty"`
	// Touched is when somebody last typed.
	Touched units.Instant `json:"touched,omitempty"`
	// Told: it has been reported. Ends is when it will be stopped; 0: it has not
	// been warned.
	Told bool          `json:"told,omitempty"`
	Ends units.Instant `json:"ends,omitempty"`
	// Unused: it has never had memory on its GPUs.
	Unused bool `json:"unused,omitempty"`
}

// checkIdle keeps since when a GPU has done nothing for each of its tasks. Where several
// share it and it does something, only the share of time in which a task's own
// kernels ran can tell. Coarse activity is no evidence, nor are readings of a GPU
// with a fault. A task that has never had memory there, on a GPU all of whose memory is
// known to be tasks', has done nothing whatever the GPU's activity is.
func (s *State) checkIdle(g *GPU) {
	still := g.Read && !g.Coarse && g.Fault == "" && g.SMACT <= idleMost
	for i := range g.Residents {
		r := &g.Residents[i]
		unused := g.Read && g.Fault == "" && r.Peak == 0 && g.OtherProcesses == 0
		switch {
		case !still && !unused && (!g.Read || g.Fault != "" || !r.Timed || r.Active > 0):
			r.QuietSince = 0
		case r.QuietSince == 0:
			r.QuietSince = max(s.now, 1)
		}
		s.lookIdle(s.tasks[r.Task])
	}
}

// clearIdle forgets what GPUs were seen to do: nobody has looked for a while. A daemon
// that starts finds the GPUs first.
func (s *State) clearIdle() {
	for _, g := range s.gpus {
		g.Read = false
		s.checkIdle(g)
	}
}

func (s *State) terminalInput(ev TerminalInput) {
	t := s.tasks[ev.Task]
	if t == nil || t.Alive() == nil {
		return
	}
	if t.Current() != nil {
		t.Idle.Touched = max(s.now, 1)
		s.lookIdle(t)
	}
	if t.Suspension != nil && t.Suspension.Reason.Code == ReasonIdle {
		s.resumeFitting(t) // somebody is there again
	}
}

// idleSince returns since when a running task does nothing, or 0 if it works or that is
// not known. unused: it has never had memory on its GPUs, and holds them all the same.
// A task without a terminal that had memory and holds none now may be between two
// stages.
func (s *State) idleSince(t *Task) (since units.Instant, unused bool) {
	a := t.Current()
	since, unused = max(a.Started, a.Back, t.Idle.Touched), a.Back == 0 // suspended tasks had memory
	holds := t.Terminal
	for _, grant := range a.Grants {
		r := s.byID[grant.GPU].resident(t.ID)
		if r == nil || r.QuietSince == 0 {
			return 0, false
		}
		since, holds, unused = max(since, r.QuietSince), holds || r.Used > 0, unused && r.Peak == 0
	}
	if !holds && !unused || len(a.Grants) == 0 { // what a task without GPUs does is not seen
		return 0, false
	}
	return since, unused
}

// idleStop is after which idle time a task is stopped; 0: never.
func (s *State) idleStop(t *Task) time.Duration {
	switch {
	case t.IdleStop != 0:
		return max(0, t.IdleStop)
	case t.Terminal:
		return s.opt.IdleStop
	}
	return s.opt.IdleYield
}

// lookIdle notes whether a task does something, and when to look again.
func (s *State) lookIdle(t *Task) {
	if t.Phase != Running {
		return
	}
	since, unused := s.idleSince(t)
	if since == t.Idle.Since {
		t.Idle.Unused = unused
		return
	}
	told := t.Idle.Told || t.Idle.Ends != 0
	t.Idle = Idleness{Since: since, Touched: t.Idle.Touched, Unused: unused}
	if told {
		s.decide(Idle{Task: t.ID, Attempt: t.Last().N})
	}
	if since != 0 {
		s.judgeIdle(t)
	}
}

// judgeIdle reports, warns and stops an idle task when it is time, and asks to be
// called again for the next of these.
func (s *State) judgeIdle(t *Task) {
	if t.Phase != Running || t.Idle.Since == 0 {
		return
	}
	next := units.Never
	after := func(d time.Duration) bool { // reports whether so much time has passed
		at := t.Idle.Since.Add(d)
		if at > s.now {
			next = min(next, at)
		}
		return at <= s.now
	}
	stop := s.idleStop(t)
	warning := min(idleWarning, stop/4)
	told := t.Idle
	if s.opt.IdleReport > 0 && after(s.opt.IdleReport) {
		t.Idle.Told = true
	}
	switch due := t.Idle.Since.Add(stop); {
	case stop > 0 && t.Idle.Ends >= due: // it is warned, and the options still say so
	case stop > 0 && after(stop-warning):
		t.Idle.Ends = max(due, s.now.Add(warning)) // it has the time of the warning in any case
	default:
		t.Idle.Ends = 0
	}
	if t.Idle != told {
		s.decide(Idle{Task: t.ID, Attempt: t.Last().N, Since: t.Idle.Since, Ends: t.Idle.Ends, Unused: t.Idle.Unused})
	}
	switch {
	case t.Idle.Ends > s.now:
		next = min(next, t.Idle.Ends)
	case t.Idle.Ends != 0:
		why := Reason{Code: ReasonIdle, Span: s.now.Sub(t.Idle.Since)}
		if !s.preemptTask(t, why) {
			s.stopVictim(t, why)
		}
		return
	}
	s.at(next, timer{Task: t.ID, Attempt: t.Last().N, Idle: true})
}

// judgeIdles looks at all idle tasks: the options have changed.
func (s *State) judgeIdles() {
	for _, g := range s.gpus {
		for i := range g.Residents {
			s.judgeIdle(s.tasks[g.Residents[i].Task])
		}
	}
}

// idles reports whether a deadline is one of an attempt that does nothing.
func (s *State) idles(d timer) bool {
	t := s.tasks[d.Task]
	return d.Idle && t != nil && t.Phase == Running && t.Last().N == d.Attempt && t.Idle.Since > 0
}
