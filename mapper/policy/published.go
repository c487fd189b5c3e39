package policy

import (
	"carma/mapper/interference"
	"carma/mapper/model"
)

// The filters of two systems that collocate by profiles, as AEGIS built them for
// comparison.

// lucidFilter allows at most two tasks on a GPU, with sharing scores that sum to at most 2.
func lucidFilter(_ View, t *model.Task, g *model.GPU) model.Rule {
	sum := sharing(t.LoadOn(0))
	for i := range g.Residents {
		sum += sharing(g.Residents[i].Load)
	}
	if len(g.Residents) >= 2 || sum > 2 {
		return model.RuleSharing
	}
	return ""
}

// horusFilter allows expected GPU utilizations that sum to at most 1.
func horusFilter(_ View, t *model.Task, g *model.GPU) model.Rule {
	if g.Utilization()+t.LoadOn(0).Busy() > 1 {
		return model.RuleUtilization
	}
	return ""
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
