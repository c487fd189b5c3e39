package mapper

import "carma/mapper/interference"

// Expected is what is known of a task's run before it, apart from its memory.
type Expected struct {
	// Loads are what the task does to each of its GPUs when it is alone
	// there; the last stands for further ones. Empty: not known.
	Loads []interference.Load `json:"loads,omitempty"`
	// Source tells where they come from, for people.
	Source string `json:"source,omitempty"`
}

// stranger is what a task is taken for of which nothing is known: one that
// fills a GPU.
var stranger = interference.Load{SMACT: 0.9, SMOCC: 0.4, DRAMA: 0.5}

// load is what a task is expected to do to the i-th of its GPUs: what earlier
// runs of it did, else what was said at its submission.
func (t *Task) load(i int) interference.Load {
	if n := len(t.Expected.Loads); n > 0 {
		return t.Expected.Loads[min(i, n-1)]
	}
	return stranger
}

// utilization is the share of time in which a kernel runs, which is what
// nvidia-smi shows as GPU utilization, guessed from the activity of SMs and
// DRAM. Three of the AEGIS solo profiles give both: 0.75, 0.92 and 0.98, for
// which this says 0.85, 0.92 and 0.98. What small tasks show is not published;
// with these figures Horus's makespan comes out as in AEGIS's table.
func utilization(l interference.Load) float64 {
	if l.SMACT == 0 && l.DRAMA == 0 {
		return 0
	}
	return min(1, max(0.2+0.9*l.SMACT, 1.6*l.DRAMA))
}

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

// The classes that AEGIS publishes, for another GPU, are tiny for small
// networks on CIFAR and jumbo from MobileNetV2 on ImageNet on; with these cuts
// Lucid's makespan comes out as in AEGIS's table.
const (
	lucidTiny  = 0.15
	lucidJumbo = 0.60
)
