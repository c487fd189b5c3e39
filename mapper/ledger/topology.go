package ledger

import (
	"slices"

	"carma/mapper/model"
)

// A task on several GPUs sends its gradients from one to the other at every step: over
// NVLink, over the PCIe of one NUMA node, or from one processor to the other. So it gets
// GPUs that are close to each other, if enough such GPUs are available.

// Closeness names, from the closest on, the groups of GPUs of one machine. An empty name
// means that the GPU is in no group, or that its group is not known.
var Closeness = []func(*model.GPU) string{
	func(g *model.GPU) string { return g.Link },
	func(g *model.GPU) string { return g.Socket },
}

// Near groups the GPUs by Closeness and keeps groups of n or more, without a change of
// order within a group. The groups are in the order of their first GPUs.
func Near(n int, gpus []*model.GPU, group func(*model.GPU) string) (all [][]*model.GPU) {
	type place struct{ node, group string }
	var at []place
	for _, g := range gpus {
		p := place{g.Node, group(g)}
		if p.group == "" {
			continue
		}
		i := slices.Index(at, p)
		if i < 0 {
			i, at, all = len(at), append(at, p), append(all, nil)
		}
		all[i] = append(all[i], g)
	}
	return slices.DeleteFunc(all, func(some []*model.GPU) bool { return len(some) < n })
}

// Closest returns the first GPUs of a ranked list that are as close to each other as any
// that many of the list can be, or else the first ones on the first GPU's machine.
func Closest(t *model.Task, ranked []*model.GPU) []*model.GPU {
	if t.GPUs > 1 {
		for _, group := range Closeness {
			for _, some := range Near(t.GPUs, ranked, group) {
				if !slices.ContainsFunc(some[:t.GPUs], t.Avoids) {
					return some[:t.GPUs]
				}
			}
		}
	}
	return OfOneMachine(t.GPUs, ranked)
}

// OfMachinesWith drops, from a list in ledger order, the GPUs of machines that
// have fewer than n in it.
func OfMachinesWith(n int, gpus []*model.GPU) []*model.GPU {
	if n == 1 {
		return gpus
	}
	kept := gpus[:0]
	for len(gpus) > 0 {
		m := 1
		for m < len(gpus) && gpus[m].Node == gpus[0].Node {
			m++
		}
		if m >= n {
			kept = append(kept, gpus[:m]...)
		}
		gpus = gpus[m:]
	}
	return kept
}

// OfOneMachine returns the first n GPUs of the first GPU's machine.
func OfOneMachine(n int, ranked []*model.GPU) []*model.GPU {
	same := make([]*model.GPU, 0, n)
	for _, g := range ranked {
		if g.Node == ranked[0].Node && len(same) < n {
			same = append(same, g)
		}
	}
	return same
}
