package mapper

import "carma/mapper/model"

// breakers holds what failed starts say about the engine, the GPUs and the namespaces,
// and the probes that show whether they work again.
type breakers struct {
	*ledger
	engineDown        model.Reason   // zero: the engine is up
	engineBreaker     *model.Breaker // of the engine, or nil if containers start
	complaints        *complaints    // of starts that failed for an unknown reason, or nil
	canary            canary
	namespaceBreakers []*model.Breaker // namespaces that take no more now, in order, see namespace_full.go
	probeTask         int              // which tasks the cycle may launch, see circuit_breaker.go
}

func newBreakers(l *ledger) *breakers { return &breakers{ledger: l, probeTask: everyTask} }

func (b *breakers) clone(l *ledger) *breakers {
	c := &breakers{ledger: l, engineDown: b.engineDown, engineBreaker: b.engineBreaker.Clone(), complaints: b.complaints.clone(), canary: b.canary, probeTask: b.probeTask}
	c.namespaceBreakers = make([]*model.Breaker, len(b.namespaceBreakers))
	for n, i := range b.namespaceBreakers {
		c.namespaceBreakers[n] = i.Clone()
	}
	return c
}
