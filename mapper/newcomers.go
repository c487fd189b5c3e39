package mapper

import (
	"slices"

	"carma/mapper/interference"
)

// newcomer is what policy carma knows about a task that it may place on a GPU.
type newcomer struct {
	newcomerKey
	demand, worst demand
	class         int            // of its load, if that is a typical one; else -1
	as            [classes]int   // its numbers as a task of each class, where its load is not known
	likely        [classes]class // the classes, the likeliest first
}

type newcomerKey struct {
	load  interference.Load
	doubt float64
	mix   mix     // what it may be, where its load is not known
	kind  int32   // among the measured pairs
	left  float64 // seconds alone
	basis basis

	circle int32
}

// class is that of a newcomer which differs from others of its class by the run time
// at most; else -1.
func (n *newcomerKey) class() int {
	if n.doubt != 0 || n.mix.unknown() || n.kind != 0 || n.circle != 0 {
		return -1
	}
	return slices.Index(typicalLoads[:], n.load)
}

// newcomers numbers the newcomers.
type newcomers struct {
	all []newcomer
	ids map[newcomerKey]int
}

// is reports whether a number is that of a newcomer.
func (n *newcomers) is(id int, who *newcomerKey) bool {
	return id < len(n.all) && n.all[id].newcomerKey == *who
}

func (n *newcomers) id(who newcomerKey, demandOf func(interference.Load) demand) int {
	id, ok := n.ids[who]
	if ok {
		return id
	}
	if n.ids == nil {
		n.ids = map[newcomerKey]int{}
	}
	one := newcomer{newcomerKey: who, class: who.class(), demand: demandOf(who.load), worst: demandOf(doubted(who.load, who.doubt))}
	one.demand.kind, one.worst.kind = who.kind, who.kind // not that of the task that was here first
	if who.mix.unknown() {
		for c, weight := range who.mix {
			if weight > 0 {
				one.as[c] = n.id(newcomerKey{load: typicalLoads[c], left: who.left, basis: who.basis, circle: who.circle}, demandOf)
			}
		}
		one.likely = who.mix.likeliest()
	}
	id = len(n.all)
	n.all, n.ids[who] = append(n.all, one), id
	return id
}

// maxNewcomers is the number of newcomers at which the notes are dropped, so that
// old ones do not take memory for ever.
const maxNewcomers = 4096
