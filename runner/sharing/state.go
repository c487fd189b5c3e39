package sharing

import (
	"slices"
	"sync"
	"time"

	"carma/mapper/model"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
)

// Options configures a [State].
type Options struct {
	MPS *MPS // nil if MPS is off
	// Missing is the reason why MPS is nil although it was configured, or empty.
	Missing string
	// Source may decide itself how tasks share its GPUs (see [gpu.Sharer]).
	Source gpu.Source
	// Devices returns the GPUs.
	Devices func() map[model.GPUID]gpu.Device
	// Changed is called when GPUs are shared otherwise than the last report to the mapper says.
	Changed func()
	Log     zerolog.Logger
}

// State records how the tasks on each GPU share it. The mapper's predictions use it.
type State struct {
	opt Options

	mu sync.Mutex
	// broken is the reason why tasks are not clients of MPS although MPS is on, or empty if they
	// are clients. It is found while the daemon runs, and set under `auto` only. MPS is tried
	// again after retry, or never if retry is zero.
	broken string
	retry  time.Time
	// faults counts the tasks that ended by a fault of MPS before one ended well.
	faults int
	proven bool
	// apart are the attempts that are no clients although the mapper treats them as
	// clients, with their GPUs.
	apart map[gpu.AttemptKey][]model.GPUID
	// clients are the attempts that were started as clients of MPS.
	clients  map[gpu.AttemptKey]*client
	reported map[model.GPUID]model.Sharing
}

const (
	// retryAfter is the time after which a control daemon that did not start is
	// tried again.
	retryAfter = 5 * time.Minute
	// mostFaults is the number of tasks that end by a fault of MPS, with none that ended
	// well, after which MPS is assumed not to work on this machine.
	mostFaults = 2
)

// New returns the state of a daemon that starts.
func New(opt Options) *State {
	return &State{opt: opt, apart: map[gpu.AttemptKey][]model.GPUID{}, clients: map[gpu.AttemptKey]*client{}}
}

// Why returns why tasks are no clients of MPS for now, or "" if they are.
func (s *State) Why(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != "" && !s.retry.IsZero() && now.After(s.retry) {
		return ""
	}
	return s.broken
}

// failed records the outcome of starting a control daemon; err is nil if it started.
func (s *State) failed(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken, s.retry = err.Error(), now.Add(retryAfter)
	} else if !s.retry.IsZero() {
		s.broken, s.retry = "", time.Time{}
	}
}

// ended records the end of a client. If the first clients all end by a fault of MPS, MPS
// is assumed not to work in containers here.
func (s *State) ended(class model.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case class == model.ExitOK:
		s.proven = true
	case class == model.ExitMPSFault && !s.proven:
		if s.faults++; s.faults >= mostFaults {
			s.broken, s.retry = "the first tasks under MPS ended by its faults", time.Time{}
		}
	}
}

// setApart records that an attempt shares its GPUs without MPS, although the mapper
// treats it as a client. Nil GPUs remove the record.
func (s *State) setApart(key gpu.AttemptKey, gpus []model.GPUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gpus == nil {
		delete(s.apart, key)
		return
	}
	s.apart[key] = gpus
}

// Of returns how tasks share a GPU now, and why not by MPS. why is "" if they use
// MPS or MPS is not configured.
func (s *State) Of(d gpu.Device) (how model.Sharing, why string) {
	if d.Shares {
		return d.Sharing, ""
	}
	if source, ok := s.opt.Source.(gpu.Sharer); ok {
		return source.Sharing(), ""
	}
	m := s.opt.MPS
	how, why = model.SharingTurns, s.opt.Missing
	if m != nil {
		how, why = m.on(d)
	}
	if d.Exclusive && how == model.SharingTurns {
		how = model.SharingAlone
	}
	if m == nil || why != "" {
		return how, why
	}
	if why := s.Why(time.Now()); why != "" {
		return model.SharingTurns, why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gpus := range s.apart {
		if slices.Contains(gpus, model.GPUID(d.UUID)) {
			return model.SharingTurns, "a task there is no client of MPS"
		}
	}
	return how, ""
}

// ByMPS reports whether tasks that share a GPU in a way are clients of carma's MPS.
func (s *State) ByMPS(how model.Sharing) bool {
	return s.opt.MPS != nil && (how == model.SharingMPS || how == model.SharingUsers)
}

// MemoryLimit returns the limit that MPS sets for the memory of tasks on a GPU, or why it
// sets none.
func (s *State) MemoryLimit(d gpu.Device) (in, not string) {
	_, why := s.Of(d)
	switch m := s.opt.MPS; {
	case why != "":
		return "", "no MPS limit: " + why
	case m == nil:
		return "", "no MPS limit: MPS is off"
	case !m.LimitMemory:
		return "", "no MPS limit: mps-memory-limit is off"
	}
	return "MPS limit per process of tasks on one GPU", ""
}

// SetReported records the last report to the mapper about all GPUs.
func (s *State) SetReported(reported map[model.GPUID]model.Sharing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported = reported
}

// report calls Changed if the way in which the GPUs are shared differs from the last
// report to the mapper.
func (s *State) report() {
	if s.opt.MPS == nil {
		return // without MPS the sharing does not change
	}
	changed := false
	for id, d := range s.opt.Devices() {
		how, _ := s.Of(d)
		s.mu.Lock()
		reported, ok := s.reported[id]
		s.mu.Unlock()
		changed = changed || ok && reported != how
	}
	if changed {
		s.opt.Changed()
	}
}
