package mapper

import "carma/mapper/interference"

// The filters of two systems that collocate by profiles, as AEGIS built them for
// comparison.

// lucidGate allows at most two tasks on a GPU, with sharing scores that sum to at most 2.
func lucidGate(_ *placer, t *Task, g *GPU) Rule {
	sum := sharing(t.load(0))
	for i := range g.Residents {
		sum += sharing(g.Residents[i].Load)
	}
	if len(g.Residents) >= 2 || sum > 2 {
		return RuleSharing
	}
	return ""
}

// horusGate allows expected GPU utilizations that sum to at most 1.
func horusGate(_ *placer, t *Task, g *GPU) Rule {
	if g.utilization()+t.load(0).Busy() > 1 {
		return RuleUtilization
	}
	return ""
}

// utilization returns the sum of the expected GPU utilizations of the residents.
func (g *GPU) utilization() float64 {
	sum := 0.0
	for i := range g.Residents {
		sum += g.Residents[i].Load.Busy()
	}
	return sum
}

// sharing returns Lucid's score of a task: 0 tiny, 1 medium, 2 jumbo. Lucid forms its
// classes from measured pairs; here they are cut by SM activity.
func sharing(l interference.Load) int {
	switch {
	case l.SMACT < lucidTiny:
		return 0
	case l.SMACT < lucidJumbo:
		return 1
	}
	return 2
}

// The classes that AEGIS publishes, for another GPU, are tiny for small
// networks on CIFAR and jumbo from MobileNetV2 on ImageNet on; with these cuts
// Lucid's makespan comes out as in AEGIS's table.
const (
	lucidTiny  = 0.15
	lucidJumbo = 0.60
)
