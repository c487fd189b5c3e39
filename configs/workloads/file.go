package workloads

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"carma/internal/units"

	"go.yaml.in/yaml/v3"
)

//go:embed *.yaml
var files embed.FS

// file is the YAML form of one model's profiles.
type file struct {
	Schema    string        `yaml:"schema"`
	Model     string        `yaml:"model"`
	Spellings []string      `yaml:"spellings"`
	Profiles  []fileProfile `yaml:"profiles"`
}

type fileProfile struct {
	Name        string                  `yaml:"name"`
	Aliases     []string                `yaml:"aliases"`
	Dataset     string                  `yaml:"dataset"`
	BatchSize   int                     `yaml:"batch_size"`
	Epochs      int                     `yaml:"epochs"`
	GPUs        int                     `yaml:"gpus"`
	WeightClass string                  `yaml:"weight_class"`
	Activity    Activity                `yaml:"activity"`
	Campaigns   map[string]fileCampaign `yaml:"campaigns"`
	Estimates   struct {
		Horus      int64 `yaml:"horus"`
		FakeTensor int64 `yaml:"faketensor"`
		GPUMemNet  int64 `yaml:"gpumemnet"`
	} `yaml:"estimates_mib"`
	Solo struct {
		ID        string  `yaml:"id"`
		EndToEnd  float64 `yaml:"end_to_end_s"`
		TrainLoop float64 `yaml:"train_loop_s"`
		PeakMiB   int64   `yaml:"peak_mib"`
		Span      string  `yaml:"span"`
	} `yaml:"solo"`
	PerGPU []gpuProfile `yaml:"per_gpu"`
	Notes  []string     `yaml:"notes"`
}

type fileCampaign struct {
	Minutes   float64 `yaml:"minutes"`
	MemoryMiB int64   `yaml:"memory_mib"`
	Source    string  `yaml:"source"`
}

// schema is the only version of the format so far.
const schema = "carma/workload/v1"

// load reads every file of a folder, in order of name.
func load(fsys fs.FS) (profiles []Profile, spellings map[string]string, err error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, nil, err
	}
	spellings = map[string]string{}
	for _, name := range names {
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, nil, err
		}
		var f file
		d := yaml.NewDecoder(bytes.NewReader(content))
		d.KnownFields(true)
		if err := d.Decode(&f); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		if f.Schema != schema {
			return nil, nil, fmt.Errorf("%s: schema %q; this carma reads %s", name, f.Schema, schema)
		}
		for _, s := range append(f.Spellings, f.Model, strings.TrimSuffix(name, ".yaml")) {
			spellings[normal(s)] = f.Model
		}
		for _, p := range f.Profiles {
			profiles = append(profiles, p.profile(f.Model))
		}
	}
	slices.SortFunc(profiles, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	return profiles, spellings, nil
}

func (f fileProfile) profile(model string) Profile {
	p := Profile{
		Name: f.Name, Aliases: f.Aliases, Model: model, Dataset: f.Dataset,
		BatchSize: f.BatchSize, Epochs: f.Epochs, GPUs: f.GPUs,
		WeightClass: f.WeightClass, Activity: f.Activity,
		Estimates: Estimates{mib(f.Estimates.Horus), mib(f.Estimates.FakeTensor), mib(f.Estimates.GPUMemNet)},
		Solo: Solo{
			ID: f.Solo.ID, Peak: mib(f.Solo.PeakMiB), Span: f.Solo.Span,
			EndToEnd:  duration(f.Solo.EndToEnd, time.Second),
			TrainLoop: duration(f.Solo.TrainLoop, time.Second),
		},
		Notes:     f.Notes,
		campaigns: map[string]Campaign{},
		perGPU:    f.PerGPU,
	}
	for name, c := range f.Campaigns {
		p.campaigns[name] = Campaign{duration(c.Minutes, time.Minute), mib(c.MemoryMiB), c.Source}
	}
	return p
}

func mib(n int64) units.Bytes { return units.Bytes(n) * units.MiB }

// duration rounds to milliseconds, so that 35.01 minutes is exactly that.
func duration(n float64, unit time.Duration) time.Duration {
	return time.Duration(n * float64(unit)).Round(time.Millisecond)
}
