package mapper

import (
	"cmp"

	"carma/internal/units"
)

// GPUFault is a fault that lasts until the GPU is reset, for example a fatal error that
// its driver has reported. Neither later samples nor restarts end it, because a driver
// reports such an error only once.
type GPUFault struct {
	Fault string        `json:"fault"` // in the words of the component that found it
	Since units.Instant `json:"since"`
	// Boot is the machine's boot at that time, as GPUInfo.Boot, or empty if not known.
	Boot string `json:"boot,omitempty"`
	// Told: the driver has asked for a reset, so it also reports when a reset has
	// happened.
	FromDriver bool `json:"told,omitempty"`
}

// GPUsReset says that GPUs were reset, which ends their persistent faults. Another boot
// of the machine ends such a fault too, and so does uncordoning the GPU ([GPUsCordoned]).
type GPUsReset struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
}

func (e GPUsReset) when() units.Instant { return e.At }
func (GPUsReset) kind() string          { return "gpus-reset" }
func (GPUsReset) about() TaskID         { return 0 }

// FaultReason says why a GPU that is present gets no tasks, in the words of the component
// that found it, or returns "" if it has no fault.
func (g *GPU) FaultReason() string {
	if g.Persistent == nil {
		return g.Fault
	}
	return cmp.Or(g.Fault, g.Persistent.Fault)
}

// setPersistentFault records a fault of a sample that lasts until a reset.
func (l *ledger) setPersistentFault(g *GPU, in *GPUSample) {
	if !in.UntilReset || in.Fault == "" {
		return
	}
	b := GPUFault{Fault: in.Fault, Since: l.now, Boot: g.Boot}
	if g.Persistent != nil {
		b = *g.Persistent
	}
	b.FromDriver = b.FromDriver || in.FromDriver
	if g.Persistent == nil || b != *g.Persistent {
		g.Persistent = &b
		l.capacityChanged()
		l.dirty = true
	}
}

func (s *State) gpusReset(ev GPUsReset) {
	for _, id := range ev.GPUs {
		if g := s.byID[id]; g != nil {
			s.clearFault(g)
		}
	}
}

// clearFault ends the persistent fault of a GPU.
func (s *State) clearFault(g *GPU) {
	if g.Persistent == nil {
		return
	}
	g.Persistent = nil
	g.changed()
	s.placer.forgetMissing(g)
	s.capacityChanged()
	s.dirty = true
}

// booted handles the present boot of a GPU's machine. A boot other than the one in the
// fault has reset the GPU.
func (s *State) booted(g *GPU, boot string) {
	if b := g.Persistent; b != nil && boot != "" && b.Boot != "" && b.Boot != boot {
		s.clearFault(g)
	}
}
