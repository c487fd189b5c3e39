package traces

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"carma/configs/traces/mixes"
	"carma/configs/workloads"
)

// GenerateOptions describe the trace that [Generate] makes.
type GenerateOptions struct {
	Seed  uint64
	Tasks int // 1 to 100,000, or 0 for 60
	// Mix contains the shares of light, medium and heavy tasks. The zero value means
	// [mixes.Default].
	Mix mixes.Mix
	// Load is the requested offered load on GPUs GPUs: the GPU time of all tasks without
	// co-location, divided by the GPU time from the first arrival to the last. All gaps are
	// scaled to reach this load. If Load is 0, they are not scaled.
	Load float64
	GPUs int // number of GPUs for Load; at least 1
}

// defaultTasks is the length of the original's traces.
const defaultTasks = 60

// Generate makes a trace like the original's. The gaps between arrivals are drawn with
// replacement from 200 gaps of Microsoft's Philly trace. A task's class is drawn by the
// weights of the mix, its workload uniformly from the shipped workloads of that class.
// The first task arrives at 0. Equal options give the same trace, with any version of Go,
// as long as the shipped workloads do not change.
func Generate(o GenerateOptions) (Trace, error) {
	if o.Tasks == 0 {
		o.Tasks = defaultTasks
	}
	if o.Tasks < 1 || o.Tasks > maxTasks {
		return Trace{}, fmt.Errorf("a generated trace has 1 to %d tasks, not %d; nearest: %s",
			maxTasks, o.Tasks, GenerateOptions{Seed: o.Seed, Tasks: max(1, min(o.Tasks, maxTasks))}.name())
	}
	t := Trace{
		Name:        o.name(),
		Description: fmt.Sprintf("%d tasks drawn from seed %d: %s; gaps from Microsoft's Philly trace", o.Tasks, o.Seed, o.mix()),
		Source:      "drawn by carma; gaps and weights of GitHub ehsanyousefzadehasl/Philly-Trace-Analyser-and-Task-Mapper",
		Campaign:    workloads.DefaultCampaign,
		Tasks:       make([]Task, o.Tasks),
	}
	gaps, pool, d := phillyGaps(), mixes.Of(t.Campaign), mixes.NewDice(o.Seed)
	at := time.Duration(0)
	for i := range t.Tasks {
		if i > 0 {
			at += gaps[d.Below(len(gaps))]
		}
		w := pool.Draw(o.mix(), d)
		t.Tasks[i] = Task{At: at, Workload: w.Name, GPUs: w.GPUs}
	}
	if o.Load > 0 {
		return t, t.stretch(o.Load, o.GPUs)
	}
	return t, nil
}

// stretch multiplies all gaps by one factor to reach the offered load on that number of
// GPUs. Arrivals are rounded to milliseconds.
func (t *Trace) stretch(load float64, gpus int) error {
	l, err := t.Arrivals()
	if err != nil {
		return err
	}
	now := l.Load(gpus)
	if now == 0 {
		return fmt.Errorf("the %d tasks of %s all arrive at once, so their load cannot be set; ask for more tasks", len(t.Tasks), t.Name)
	}
	factor := now / load
	if last := l.Span().Seconds() * factor; last > maxAt.Seconds() {
		return fmt.Errorf("a load of %g takes longer than ten years; nearest: %.2g", load, load*last/maxAt.Seconds())
	}
	for i := range t.Tasks {
		t.Tasks[i].At = time.Duration(float64(t.Tasks[i].At) * factor).Round(time.Millisecond)
	}
	t.Description += fmt.Sprintf(", stretched to a load of %.4g on %d GPUs", load, gpus)
	return nil
}

//go:embed gaps/philly-200.yaml
var gapsFile []byte

var phillyGaps = sync.OnceValue(func() []time.Duration {
	var f struct {
		Gaps []int `yaml:"gaps_s"`
	}
	if err := yaml.Unmarshal(gapsFile, &f); err != nil || len(f.Gaps) == 0 {
		panic(fmt.Sprintf("traces: gaps: %v", err)) // the file is embedded, so this is a bug of carma
	}
	gaps := make([]time.Duration, len(f.Gaps))
	for i, s := range f.Gaps {
		gaps[i] = time.Duration(s) * time.Second
	}
	return gaps
})

// mix returns the mix from which to draw.
func (o GenerateOptions) mix() mixes.Mix {
	if o.Mix == (mixes.Mix{}) {
		return mixes.Default
	}
	return o.Mix
}

// generated is the prefix of the names of generated traces.
const generated = "generated-"

func (o GenerateOptions) name() string {
	name := fmt.Sprintf("%s%dx%d", generated, o.Seed, o.Tasks)
	if o.Tasks == defaultTasks {
		name = generated + strconv.FormatUint(o.Seed, 10)
	}
	if o.mix() != mixes.Default {
		m := o.mix()
		name += fmt.Sprintf("-mix-%.3g-%.3g-%.3g", 100*m[0], 100*m[1], 100*m[2])
	}
	if o.Load > 0 {
		name += fmt.Sprintf("-load-%.4g", o.Load)
	}
	return name
}

// readGenerated makes the trace for a name that begins with "generated".
func readGenerated(name string) (Trace, error) {
	rest, _ := strings.CutPrefix(strings.TrimPrefix(name, "generated"), "-")
	first, second, two := strings.Cut(rest, "x")
	seed, seedErr := strconv.ParseUint(first, 10, 64)
	tasks, tasksErr := defaultTasks, error(nil)
	if two {
		tasks, tasksErr = strconv.Atoi(second)
	}
	nearest := GenerateOptions{Seed: seed, Tasks: defaultTasks}
	if two && tasksErr == nil || number(second) { // also if the number is too large
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
	case name != GenerateOptions{Seed: seed, Tasks: tasks}.name() && name != fmt.Sprintf("%s%dx%d", generated, seed, tasks):
		return Trace{}, fmt.Errorf("%s: no shipped trace of that name; nearest: %s", name, nearest.name())
	}
	return Generate(GenerateOptions{Seed: seed, Tasks: tasks})
}

// number reports whether s is an integer, however large.
func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
