package workloads

import (
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
)

// Profile contains all data about one training task. It is shared: callers must not
// change it.
type Profile struct {
	Name    string
	Aliases []string // task names of the original
	Model   string   // in the source's spelling: "resnet50"
	Dataset string

	BatchSize, Epochs, GPUs int

	// WeightClass is the original's class: "light", "medium/heavy" or "heavy".
	WeightClass string
	// Activity is the activity of the first GPU: the mean over a run without co-location on
	// an A100.
	Activity Activity
	// Estimates are the estimates published with the task.
	Estimates Estimates
	Solo      Solo
	// Notes lists contradictions between the sources.
	Notes []string

	campaigns map[string]Campaign
	perGPU    []gpuProfile
}

// Activity is the load of a GPU by a task, 0 to 1, as DCGM defines the terms.
type Activity struct {
	SMACT    float64 `yaml:"smact"`     // share of time an SM has work, mean over SMs
	SMACTP95 float64 `yaml:"smact_p95"` // 95th percentile of the samples, or 0 if unknown
	SMOCC    float64 `yaml:"smocc"`     // share of the warps an SM can hold
	DRAMA    float64 `yaml:"drama"`     // share of time the DRAM interface moves data
}

// Campaign is one measurement of the task without co-location on its GPUs.
type Campaign struct {
	RunTime time.Duration // of the whole task, start-up included
	Memory  units.Bytes   // peak on the fullest GPU, as nvidia-smi prints it
	Source  string        // origin of RunTime
}

// Estimates contains peaks per GPU predicted by other systems, or 0 if there is none.
type Estimates struct {
	Horus, FakeTensor, GPUMemNet units.Bytes
}

// Solo is the AEGIS run without co-location in which the activity was measured.
type Solo struct {
	ID        string // the run's own name; Find accepts it
	EndToEnd  time.Duration
	TrainLoop time.Duration // 0 if not published
	Peak      units.Bytes
	Span      string // "full_run", "200s_window", or empty if not published
}

type gpuProfile struct {
	PeakMiB  int64 `yaml:"peak_mib"`
	Activity `yaml:",inline"`
}

// samples is the published size of a data set's training part. WikiText-2 is counted in
// blocks of 128 tokens, because then 2,000 steps of the Llama profile take their measured
// time. Criteo is a guess, because its task reads only a part.
var samples = map[string]int{
	"imagenet": 1_281_167, "cifar100": 50_000, "mnist": 60_000, "coco": 117_266,
	"pascal_voc": 1_464, "wikitext2": 18_700, "criteo_terabyte": 64_000_000,
}

// StepsPerEpoch returns the number of training steps in an epoch.
func (p Profile) StepsPerEpoch() int {
	return max(1, (samples[p.Dataset]+p.BatchSize-1)/p.BatchSize)
}

// StepTime returns the time of one training step in the solo run.
func (p Profile) StepTime() time.Duration {
	loop := p.Solo.TrainLoop
	if loop == 0 {
		loop = p.Solo.EndToEnd
	}
	return loop / time.Duration(p.StepsPerEpoch()*p.Epochs)
}

// DefaultCampaign is the campaign used if none is named.
const DefaultCampaign = "v2"

// Campaign returns the measurements of campaign "v1" or "v2", or of the default if name
// is "". It fails for an unknown campaign, or if the task was not measured in it: v1 has
// only some tasks.
func (p Profile) Campaign(name string) (Campaign, error) {
	if name == "" {
		name = DefaultCampaign
	}
	c, ok := p.campaigns[name]
	if ok {
		return c, nil
	}
	if name != "v1" && name != "v2" {
		return Campaign{}, fmt.Errorf("unknown campaign %q; v1 or v2", name)
	}
	return Campaign{}, fmt.Errorf("%s was not measured in campaign %s; %s", p.Name, name, DefaultCampaign)
}

// Peaks returns the peak memory on each of the task's GPUs in a campaign. The
// campaigns publish only the fullest GPU. The others are scaled as in the solo
// run.
func (p Profile) Peaks(campaign string) ([]units.Bytes, error) {
	c, err := p.Campaign(campaign)
	if err != nil {
		return nil, err
	}
	peaks := slices.Repeat([]units.Bytes{c.Memory}, p.GPUs)
	if len(p.perGPU) == p.GPUs {
		first := p.perGPU[0].PeakMiB
		for i, g := range p.perGPU {
			peaks[i] = c.Memory * units.Bytes(g.PeakMiB) / units.Bytes(first)
		}
	}
	return peaks, nil
}

// Activities returns the activity on each of the task's GPUs.
func (p Profile) Activities() []Activity {
	all := slices.Repeat([]Activity{p.Activity}, p.GPUs)
	if len(p.perGPU) == p.GPUs {
		for i, g := range p.perGPU {
			all[i] = g.Activity
		}
	}
	return all
}
