package place

import (
	"slices"

	"carma/mapper/interference"
	"carma/mapper/predict"
)

// candidate holds the properties of a task that policy carma may place on a GPU.
type candidate struct {
	candidateKey
	demand, worst predict.Demand
	class         int                            // of its load if that is a typical one, or -1
	as            [predict.Classes]int           // its numbers as a task of each class, if its load is not known
	likely        [predict.Classes]predict.Class // the classes, the likeliest first
}

type candidateKey struct {
	load  interference.Load
	doubt float64
	prior predict.ClassPrior // its likely classes, if its load is not known
	kind  int32              // among the measured pairs
	left  float64            // seconds alone
	basis predict.Basis

	domain int32
}

// class returns the class of a candidate that differs from others of its class in run
// time at most, or -1.
func (n *candidateKey) class() int {
	if n.doubt != 0 || n.prior.IsUnknown() || n.kind != 0 || n.domain != 0 {
		return -1
	}
	return slices.Index(predict.TypicalLoads[:], n.load)
}

// candidates numbers the distinct candidates.
type candidates struct {
	all []candidate
	ids map[candidateKey]int
}

// is reports whether number id belongs to candidate who.
func (n *candidates) is(id int, who *candidateKey) bool {
	return id < len(n.all) && n.all[id].candidateKey == *who
}

func (n *candidates) id(who candidateKey, demandOf func(interference.Load) predict.Demand) int {
	id, ok := n.ids[who]
	if ok {
		return id
	}
	if n.ids == nil {
		n.ids = map[candidateKey]int{}
	}
	one := candidate{candidateKey: who, class: who.class(), demand: demandOf(who.load), worst: demandOf(predict.WithDoubt(who.load, who.doubt))}
	one.demand.Kind, one.worst.Kind = who.kind, who.kind // not the kind of the first task with this key
	if who.prior.IsUnknown() {
		for c, weight := range who.prior {
			if weight > 0 {
				one.as[c] = n.id(candidateKey{load: predict.TypicalLoads[c], left: who.left, basis: who.basis, domain: who.domain}, demandOf)
			}
		}
		one.likely = who.prior.Likeliest()
	}
	id = len(n.all)
	n.all, n.ids[who] = append(n.all, one), id
	return id
}

// maxCandidates is the number of candidates at which the cache is dropped, so that old
// ones do not fill the memory.
const maxCandidates = 4096
