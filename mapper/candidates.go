package mapper

import (
	"slices"

	"carma/mapper/interference"
)

// candidate is what policy carma knows about a task that it may place on a GPU.
type candidate struct {
	candidateKey
	demand, worst loadDemand
	class         int            // of its load, if that is a typical one; else -1
	as            [classes]int   // its numbers as a task of each class, where its load is not known
	likely        [classes]class // the classes, the likeliest first
}

type candidateKey struct {
	load  interference.Load
	doubt float64
	mix   classPrior // what it may be, where its load is not known
	kind  int32      // among the measured pairs
	left  float64    // seconds alone
	basis basis

	circle int32
}

// class is that of a newcomer which differs from others of its class by the run time
// at most; else -1.
func (n *candidateKey) class() int {
	if n.doubt != 0 || n.mix.unknown() || n.kind != 0 || n.circle != 0 {
		return -1
	}
	return slices.Index(typicalLoads[:], n.load)
}

// candidates numbers the newcomers.
type candidates struct {
	all []candidate
	ids map[candidateKey]int
}

// is reports whether a number is that of a newcomer.
func (n *candidates) is(id int, who *candidateKey) bool {
	return id < len(n.all) && n.all[id].candidateKey == *who
}

func (n *candidates) id(who candidateKey, demandOf func(interference.Load) loadDemand) int {
	id, ok := n.ids[who]
	if ok {
		return id
	}
	if n.ids == nil {
		n.ids = map[candidateKey]int{}
	}
	one := candidate{candidateKey: who, class: who.class(), demand: demandOf(who.load), worst: demandOf(doubted(who.load, who.doubt))}
	one.demand.kind, one.worst.kind = who.kind, who.kind // not that of the task that was here first
	if who.mix.unknown() {
		for c, weight := range who.mix {
			if weight > 0 {
				one.as[c] = n.id(candidateKey{load: typicalLoads[c], left: who.left, basis: who.basis, circle: who.circle}, demandOf)
			}
		}
		one.likely = who.mix.likeliest()
	}
	id = len(n.all)
	n.all, n.ids[who] = append(n.all, one), id
	return id
}

// maxCandidates is the number of newcomers at which the notes are dropped, so that
// old ones do not take memory for ever.
const maxCandidates = 4096
