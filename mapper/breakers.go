package mapper

import (
	"fmt"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// breakers holds what failed starts say about the engine, the GPUs and the namespaces,
// and the probes that show whether they work again.
type breakers struct {
	*ledger.Ledger
	engineDown        model.Reason   // zero: the engine is up
	engineBreaker     *model.Breaker // of the engine, or nil if containers start
	complaints        *complaints    // of starts that failed for an unknown reason, or nil
	canary            canary
	namespaceBreakers []*model.Breaker // namespaces that take no more now, in order, see namespace_full.go
	probeTask         int              // which tasks the cycle may launch, see circuit_breaker.go
}

func newBreakers(l *ledger.Ledger) *breakers { return &breakers{Ledger: l, probeTask: everyTask} }

func (b *breakers) clone(l *ledger.Ledger) *breakers {
	c := &breakers{Ledger: l, engineDown: b.engineDown, engineBreaker: b.engineBreaker.Clone(), complaints: b.complaints.clone(), canary: b.canary, probeTask: b.probeTask}
	c.namespaceBreakers = make([]*model.Breaker, len(b.namespaceBreakers))
	for n, i := range b.namespaceBreakers {
		c.namespaceBreakers[n] = i.Clone()
	}
	return c
}

// breakersSnapshot is the breakers' section of a snapshot.
type breakersSnapshot struct {
	EngineDown model.Reason     `json:"engine_down,omitzero"`
	Sick       *model.Breaker   `json:"sick,omitempty"`
	Complaints *complaints      `json:"complaints,omitempty"`
	Canary     canary           `json:"canary,omitzero"`
	Full       []*model.Breaker `json:"full,omitempty"`
}

func (b *breakers) snapshot() breakersSnapshot {
	return breakersSnapshot{EngineDown: b.engineDown, Sick: b.engineBreaker, Complaints: b.complaints, Canary: b.canary, Full: b.namespaceBreakers}
}

func (b *breakers) restore(snap breakersSnapshot) error {
	b.engineDown, b.engineBreaker, b.complaints, b.canary, b.namespaceBreakers = snap.EngineDown, snap.Sick, snap.Complaints, snap.Canary, snap.Full
	if !validFull(b.namespaceBreakers) {
		return fmt.Errorf("a full namespace is there twice, or is not tested again")
	}
	return nil
}
