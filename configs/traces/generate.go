package traces

import (
	_ "embed"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"carma/configs/workloads"
)

// GenerateOptions say which trace [Generate] makes.
type GenerateOptions struct {
	Seed  uint64
	Tasks int // 1 to 100,000; 0: 60
}

// defaultTasks is the length of the original's traces.
const defaultTasks = 60

// classes of workloads by their run alone, and how often each comes: the
// weights of the script that drew the original's traces t1 and t2 (GitHub
// ehsanyousefzadehasl/Philly-Trace-Analyser-and-Task-Mapper). The first that
// holds is a workload's class.
var classes = []struct {
	name   string
	weight float64
	holds  func(gpus int, solo time.Duration) bool
}{
	{"heavy", 0.1, func(gpus int, solo time.Duration) bool { return gpus > 1 || solo > time.Hour }},
	{"light", 0.3, func(_ int, solo time.Duration) bool { return solo < 10*time.Minute }},
	{"medium", 0.6, func(int, time.Duration) bool { return true }},
}

// Generate makes a trace as the original's were made: gaps between arrivals
// are drawn with replacement from 200 of Microsoft's Philly trace, a task's
// class by the weights above and its workload uniformly from the shipped ones
// of that class. The first task arrives at 0. Equal options give the same
// trace, with any version of Go, as long as the shipped workloads stay.
func Generate(o GenerateOptions) (Trace, error) {
	if o.Tasks == 0 {
		o.Tasks = defaultTasks
	}
	if o.Tasks < 1 || o.Tasks > maxTasks {
		return Trace{}, fmt.Errorf("a generated trace has 1 to %d tasks, not %d; nearest: %s",
			maxTasks, o.Tasks, GenerateOptions{o.Seed, max(1, min(o.Tasks, maxTasks))}.name())
	}
	t := Trace{
		Name:        o.name(),
		Description: fmt.Sprintf("%d tasks drawn from seed %d: 30 %% light, 60 %% medium, 10 %% heavy; gaps from Microsoft's Philly trace", o.Tasks, o.Seed),
		Source:      "drawn by carma; gaps and weights of GitHub ehsanyousefzadehasl/Philly-Trace-Analyser-and-Task-Mapper",
		Campaign:    workloads.DefaultCampaign,
		Tasks:       make([]Task, o.Tasks),
	}
	gaps, pools, d := phillyGaps(), classPools(), dice{rand.NewPCG(o.Seed, 0)}
	at := time.Duration(0)
	for i := range t.Tasks {
		if i > 0 {
			at += gaps[d.below(len(gaps))]
		}
		pool := pools[d.class()]
		w := pool[d.below(len(pool))]
		t.Tasks[i] = Task{At: at, Workload: w.Name, GPUs: w.GPUs}
	}
	return t, nil
}

// dice draw from PCG, whose stream is fixed; how math/rand/v2 makes numbers of
// it may change.
type dice struct{ *rand.PCG }

// below returns 0 to n-1.
func (d dice) below(n int) int {
	high, _ := bits.Mul64(d.Uint64(), uint64(n))
	return int(high)
}

func (d dice) class() int {
	f := float64(d.Uint64()>>11) / (1 << 53) // 0 to 1
	for i, c := range classes {
		if f -= c.weight; f < 0 {
			return i
		}
	}
	return len(classes) - 1
}

// classPools are the shipped workloads by class, sorted by name. gpt2-xl, the
// one whose activity was not measured, is left out: none of the original's
// traces has it, and it fills an A100 40 GB to the last 0.8 GB, which leaves
// an estimator no margin.
var classPools = sync.OnceValue(func() [][]workloads.Profile {
	pools := make([][]workloads.Profile, len(classes))
	for _, w := range workloads.All() {
		c, err := w.Campaign(workloads.DefaultCampaign)
		if err != nil || w.Solo.Span == "" {
			continue // not measured
		}
		for i, class := range classes {
			if class.holds(w.GPUs, c.RunTime) {
				pools[i] = append(pools[i], w)
				break
			}
		}
	}
	return pools
})

//go:embed gaps/philly-200.yaml
var gapsFile []byte

var phillyGaps = sync.OnceValue(func() []time.Duration {
	var f struct {
		Gaps []int `yaml:"gaps_s"`
	}
	if err := yaml.Unmarshal(gapsFile, &f); err != nil || len(f.Gaps) == 0 {
		panic(fmt.Sprintf("traces: gaps: %v", err)) // our own bug: the file is embedded
	}
	gaps := make([]time.Duration, len(f.Gaps))
	for i, s := range f.Gaps {
		gaps[i] = time.Duration(s) * time.Second
	}
	return gaps
})

// generated begins the names of traces that are made when asked for.
const generated = "generated-"

func (o GenerateOptions) name() string {
	if o.Tasks == defaultTasks {
		return generated + strconv.FormatUint(o.Seed, 10)
	}
	return fmt.Sprintf("%s%dx%d", generated, o.Seed, o.Tasks)
}

// readGenerated makes the trace of a name that begins with "generated".
func readGenerated(name string) (Trace, error) {
	rest, _ := strings.CutPrefix(strings.TrimPrefix(name, "generated"), "-")
	first, second, two := strings.Cut(rest, "x")
	seed, seedErr := strconv.ParseUint(first, 10, 64)
	tasks, tasksErr := defaultTasks, error(nil)
	if two {
		tasks, tasksErr = strconv.Atoi(second)
	}
	nearest := GenerateOptions{seed, defaultTasks}
	if two && tasksErr == nil || number(second) { // too large a number, too
		nearest.Tasks = max(1, min(tasks, maxTasks))
	}
	switch {
	case seedErr != nil && !number(first):
		nearest.Seed = 1
		return Trace{}, fmt.Errorf("%s: the seed %q is not a whole number; nearest: %s", name, first, nearest.name())
	case seedErr != nil:
		return Trace{}, fmt.Errorf("%s: the seed %s is more than 64 bits; nearest: %s", name, first, nearest.name())
	case tasksErr != nil && !number(second):
		return Trace{}, fmt.Errorf("%s: the number of tasks %q is not a whole number; nearest: %s", name, second, nearest.name())
	case tasks < 1 || tasks > maxTasks:
		return Trace{}, fmt.Errorf("%s: a generated trace has 1 to %d tasks, not %s; nearest: %s", name, maxTasks, second, nearest.name())
	case name != GenerateOptions{seed, tasks}.name() && name != fmt.Sprintf("%s%dx%d", generated, seed, tasks):
		return Trace{}, fmt.Errorf("%s: no shipped trace of that name; nearest: %s", name, nearest.name())
	}
	return Generate(GenerateOptions{seed, tasks})
}

// number reports whether s is written as a whole number, however large.
func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
