package mapper

import "carma/mapper/interference"

// The gates of two systems that collocate by profiles, as AEGIS built them for
// comparison.

// lucidGate: at most two tasks on a GPU, whose sharing scores sum to at most 2.
func lucidGate(_ *State, t *Task, g *GPU) Rule {
	sum := sharing(t.load(0))
	for i := range g.Residents {
		sum += sharing(g.Residents[i].Load)
	}
	if len(g.Residents) >= 2 || sum > 2 {
		return RuleSharing
	}
	return ""
}

// horusGate: the expected GPU utilizations sum to at most 1.
func horusGate(_ *State, t *Task, g *GPU) Rule {
	if g.utilization()+utilization(t.load(0)) > 1 {
		return RuleUtilization
	}
	return ""
}

// utilization is the sum of what the residents are expected to show.
func (g *GPU) utilization() float64 {
	sum := 0.0
	for i := range g.Residents {
		sum += utilization(g.Residents[i].Load)
	}
	return sum
}

// utilization is the share of time in which a kernel runs, which is what
// nvidia-smi shows as GPU utilization, guessed from the activity of SMs and
// DRAM. Three of the AEGIS solo profiles give both: 0.75, 0.92 and 0.98, for
// which this says 0.80, 0.89 and 0.98.
func utilization(l interference.Load) float64 { return min(1, max(1.1*l.SMACT, 1.6*l.DRAMA)) }

// sharing is Lucid's score of a task: 0 tiny, 1 medium, 2 jumbo. Lucid forms
// its classes from measured pairs; here they are cut by SM activity.
func sharing(l interference.Load) int {
	switch {
	case l.SMACT < lucidTiny:
		return 0
	case l.SMACT < lucidJumbo:
		return 1
	}
	return 2
}

const (
	lucidTiny  = 0.30
	lucidJumbo = 0.70
)
