package mapper

import (
	"cmp"

	"carma/internal/units"
)

// Persistent is a fault that lasts until the GPU is reset, as after a fatal error that
// its driver has reported. Later samples do not end it, and restarts do not either:
// a driver reports such an error once.
type GPUFault struct {
	Fault string        `json:"fault"` // in the words of who found it
	Since units.Instant `json:"since"`
	// Boot is the machine's boot of then, as GPUInfo.Boot; empty: not known.
	Boot string `json:"boot,omitempty"`
	// Told: the driver has said that it wants a reset, so it also tells when there
	// was one.
	Told bool `json:"told,omitempty"`
}

// GPUsReset says that GPUs were reset. What was broken about them is well. It is
// not the only end: so is another boot of the machine, and that somebody opens the
// GPU again ([GPUsCordoned]).
type GPUsReset struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
}

func (e GPUsReset) when() units.Instant { return e.At }
func (GPUsReset) kind() string          { return "gpus-reset" }
func (GPUsReset) about() TaskID         { return 0 }

// FaultReason is why a GPU gets no tasks though it is there, in the words of who found
// it; empty: nothing is wrong with it.
func (g *GPU) FaultReason() string {
	if g.Persistent == nil {
		return g.Fault
	}
	return cmp.Or(g.Fault, g.Persistent.Fault)
}

// setPersistentFault notes that a sample shows a fault that lasts.
func (s *State) setPersistentFault(g *GPU, in *GPUSample) {
	if !in.UntilReset || in.Fault == "" {
		return
	}
	b := GPUFault{Fault: in.Fault, Since: s.now, Boot: g.Boot}
	if g.Persistent != nil {
		b = *g.Persistent
	}
	b.Told = b.Told || in.FromDriver
	if g.Persistent == nil || b != *g.Persistent {
		g.Persistent = &b
		s.cache.ceilings, s.dirty = [2]ceiling{}, true
	}
}

func (s *State) gpusReset(ev GPUsReset) {
	for _, id := range ev.GPUs {
		if g := s.byID[id]; g != nil {
			s.clearFault(g)
		}
	}
}

// clearFault ends what was broken about a GPU.
func (s *State) clearFault(g *GPU) {
	if g.Persistent == nil {
		return
	}
	g.Persistent = nil
	g.markDirty()
	s.forgetMissing(g)
	s.cache.ceilings, s.dirty = [2]ceiling{}, true
}

// booted follows that a GPU's machine is in a boot. Another one than before has
// reset it.
func (s *State) booted(g *GPU, boot string) {
	if b := g.Persistent; b != nil && boot != "" && b.Boot != "" && b.Boot != boot {
		s.clearFault(g)
	}
}
