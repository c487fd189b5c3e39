package study

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/configs/servers"

	"go.yaml.in/yaml/v3"
)

//go:embed published.yaml
var publishedText []byte

// PublishedSet contains the figures of one source.
type PublishedSet struct {
	Name      string        `yaml:"name"`
	Title     string        `yaml:"title"`
	Source    string        `yaml:"source"`
	StartUp   time.Duration `yaml:"start-up"`
	Tolerance float64       `yaml:"tolerance"` // default for figures without their own
	Bound     bool          `yaml:"bound"`     // default, too
	// Traces lists the traces that trace "all" combines.
	Traces []string `yaml:"traces"`
	// Rank is the metric by which the order of the policies is compared, or empty.
	Rank      string   `yaml:"rank"`
	LeastRank float64  `yaml:"least-rank"` // the least accepted rank correlation
	Figures   []Figure `yaml:"figures"`
}

// Figure is one published number.
type Figure struct {
	Trace     string  `yaml:"trace"`
	GPUs      int     `yaml:"gpus"`
	Policy    string  `yaml:"policy"`
	Metric    string  `yaml:"metric"`
	Value     float64 `yaml:"value"`
	Tolerance float64 `yaml:"tolerance"` // or 0 for the set's tolerance
	Bound     bool    `yaml:"bound"`
}

// allTraces is the trace's name in figures over all traces of a set.
const allTraces = "all"

// PublishedSets reads the embedded file.
func PublishedSets() ([]PublishedSet, error) {
	var file struct {
		Schema string         `yaml:"schema"`
		Sets   []PublishedSet `yaml:"sets"`
	}
	d := yaml.NewDecoder(bytes.NewReader(publishedText))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	return file.Sets, nil
}

// Compared is a figure with carma's value.
type Compared struct {
	Figure
	Ours float64
}

// Difference returns the difference relative to the published value.
func (c Compared) Difference() float64 { return c.Ours/c.Value - 1 }

// OK reports whether carma's value is within the tolerance of the published value.
func (c Compared) OK() bool { return math.Abs(c.Difference()) <= c.Tolerance }

// ComparedSet is a set with carma's values.
type ComparedSet struct {
	PublishedSet
	Lines       []Compared
	Correlation float64 // Spearman's rank correlation
}

// Off reports whether a bound does not hold.
func (s *ComparedSet) Off() bool {
	return s.Rank != "" && s.Correlation < s.LeastRank ||
		slices.ContainsFunc(s.Lines, func(c Compared) bool { return c.Bound && !c.OK() })
}

// Compare replays the figures of a set.
func (set PublishedSet) Compare(p Progress) (ComparedSet, error) {
	out := ComparedSet{PublishedSet: set}
	replays := map[int][]Replayed{} // by GPUs
	for _, f := range set.Figures {
		if replays[f.GPUs] == nil {
			v, err := set.study(p, f.GPUs)
			if err != nil {
				return out, err
			}
			if replays[f.GPUs], err = v.Run(); err != nil {
				return out, err
			}
		}
		line := Compared{Figure: f}
		if line.Tolerance == 0 {
			line.Tolerance = set.Tolerance
		}
		line.Bound = line.Bound || set.Bound
		all := replays[f.GPUs]
		if f.Trace != allTraces {
			i := slices.IndexFunc(all, func(r Replayed) bool { return r.Trace.Name == f.Trace })
			all = all[i : i+1]
		}
		outcomes, references := Across(all, f.Policy)
		line.Ours = Measure(f.Metric, outcomes, references)
		out.Lines = append(out.Lines, line)
	}
	var ours, theirs []float64
	for _, l := range out.Lines {
		if l.Metric == set.Rank {
			ours, theirs = append(ours, l.Ours), append(theirs, l.Value)
		}
	}
	out.Correlation = spearman(ours, theirs)
	return out, nil
}

// study returns the study of a set's figures for a number of GPUs.
func (set PublishedSet) study(p Progress, gpus int) (*Study, error) {
	v := &Study{Progress: p, StartUp: set.StartUp}
	var names []string
	for _, f := range set.Figures {
		if f.GPUs != gpus {
			continue
		}
		traces := []string{f.Trace}
		if f.Trace == allTraces {
			traces = set.Traces
		}
		for _, t := range traces {
			if !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
		if !slices.ContainsFunc(v.Rows, func(r Row) bool { return r.Label == f.Policy }) {
			v.Rows = append(v.Rows, mustPreset(f.Policy))
		}
	}
	var err error
	if v.Server, err = Server("sim:"+servers.Default, gpus); err != nil {
		return nil, err
	}
	v.Traces, err = ReadTraces(names)
	return v, err
}
