package mapper

import (
	"cmp"

	"carma/internal/units"
)

// Broken is a fault that lasts until the GPU is reset, as after a fatal error that
// its driver has reported. Later samples do not end it, and restarts do not either:
// a driver reports such an error once.
type Broken struct {
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
// GPU again ([GPUsClosed]).
type GPUsReset struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
}

func (e GPUsReset) when() units.Instant { return e.At }
func (GPUsReset) kind() string          { return "gpus-reset" }
func (GPUsReset) about() TaskID         { return 0 }

// Wrong is why a GPU gets no tasks though it is there, in the words of who found
// it; empty: nothing is wrong with it.
func (g *GPU) Wrong() string {
	if g.Broken == nil {
		return g.Fault
	}
	return cmp.Or(g.Fault, g.Broken.Fault)
}

// breaks notes that a sample shows a fault that lasts.
func (s *State) breaks(g *GPU, in *GPUSample) {
	if !in.Lasts || in.Fault == "" {
		return
	}
	b := Broken{Fault: in.Fault, Since: s.now, Boot: g.Boot}
	if g.Broken != nil {
		b = *g.Broken
	}
	b.Told = b.Told || in.Told
	if g.Broken == nil || b != *g.Broken {
		g.Broken = &b
		s.notes.ceilings, s.dirty = [2]ceiling{}, true
	}
}

func (s *State) gpusReset(ev GPUsReset) {
	for _, id := range ev.GPUs {
		if g := s.byID[id]; g != nil {
			s.mends(g)
		}
	}
}

// mends ends what was broken about a GPU.
func (s *State) mends(g *GPU) {
	if g.Broken == nil {
		return
	}
	g.Broken = nil
	g.mark()
	s.forgetMissing(g)
	s.notes.ceilings, s.dirty = [2]ceiling{}, true
}

// booted follows that a GPU's machine is in a boot. Another one than before has
// reset it.
func (s *State) booted(g *GPU, boot string) {
	if b := g.Broken; b != nil && boot != "" && b.Boot != "" && b.Boot != boot {
		s.mends(g)
	}
}
