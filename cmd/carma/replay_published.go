package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed published.yaml
var publishedText []byte

// publishedSet is figures of one source.
type publishedSet struct {
	Name      string        `yaml:"name"`
	Title     string        `yaml:"title"`
	Source    string        `yaml:"source"`
	StartUp   time.Duration `yaml:"start-up"`
	Tolerance float64       `yaml:"tolerance"` // of figures without their own
	Bound     bool          `yaml:"bound"`     // likewise
	// Traces are what trace "all" stands for.
	Traces []string `yaml:"traces"`
	// Rank is the metric whose order of the policies is compared; empty: none.
	Rank      string   `yaml:"rank"`
	LeastRank float64  `yaml:"least-rank"` // a bound
	Figures   []figure `yaml:"figures"`
}

// figure is one published number.
type figure struct {
	Trace     string  `yaml:"trace"`
	GPUs      int     `yaml:"gpus"`
	Policy    string  `yaml:"policy"`
	Metric    string  `yaml:"metric"`
	Value     float64 `yaml:"value"`
	Tolerance float64 `yaml:"tolerance"` // 0: the set's
	Bound     bool    `yaml:"bound"`
}

// allTraces is the trace of figures over all traces of a set.
const allTraces = "all"

// publishedSets reads the embedded file.
func publishedSets() ([]publishedSet, error) {
	var file struct {
		Schema string         `yaml:"schema"`
		Sets   []publishedSet `yaml:"sets"`
	}
	d := yaml.NewDecoder(bytes.NewReader(publishedText))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	return file.Sets, nil
}

// compared is a figure with ours beside it.
type compared struct {
	figure
	ours float64
}

// difference is relative to the published value.
func (c compared) difference() float64 { return c.ours/c.Value - 1 }

func (c compared) ok() bool { return math.Abs(c.difference()) <= c.Tolerance }

// comparedSet is a set with ours beside it.
type comparedSet struct {
	publishedSet
	lines []compared
	rank  float64 // Spearman's
}

// off reports whether a bound does not hold.
func (s *comparedSet) off() bool {
	return s.Rank != "" && s.rank < s.LeastRank ||
		slices.ContainsFunc(s.lines, func(c compared) bool { return c.Bound && !c.ok() })
}

// compare replays what a set names.
func (set publishedSet) compare(c *console) (comparedSet, error) {
	out := comparedSet{publishedSet: set}
	replays := map[int][]replayedTrace{} // by GPUs
	for _, f := range set.Figures {
		if replays[f.GPUs] == nil {
			v, err := set.replay(c, f.GPUs)
			if err != nil {
				return out, err
			}
			if replays[f.GPUs], err = v.run(); err != nil {
				return out, err
			}
		}
		line := compared{figure: f}
		if line.Tolerance == 0 {
			line.Tolerance = set.Tolerance
		}
		line.Bound = line.Bound || set.Bound
		all := replays[f.GPUs]
		if f.Trace != allTraces {
			i := slices.IndexFunc(all, func(r replayedTrace) bool { return r.trace.Name == f.Trace })
			all = all[i : i+1]
		}
		outcomes, references := across(all, f.Policy)
		line.ours = measure(f.Metric, outcomes, references)
		out.lines = append(out.lines, line)
	}
	var ours, theirs []float64
	for _, l := range out.lines {
		if l.Metric == set.Rank {
			ours, theirs = append(ours, l.ours), append(theirs, l.Value)
		}
	}
	out.rank = spearman(ours, theirs)
	return out, nil
}

// replay is what a set wants replayed on so many GPUs.
func (set publishedSet) replay(c *console, gpus int) (*virtualReplay, error) {
	v := &virtualReplay{console: c, startUp: set.StartUp}
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
		if !slices.ContainsFunc(v.rows, func(r replayRow) bool { return r.label == f.Policy }) {
			v.rows = append(v.rows, mustPreset(f.Policy))
		}
	}
	var err error
	if v.server, err = simulatedServer("sim:"+defaultServer, gpus); err != nil {
		return nil, err
	}
	v.traces, err = readTraces(names)
	return v, err
}

// replayPublished prints ours beside what was published.
func (a *app) replayPublished(asJSON bool) error {
	sets, err := publishedSets()
	if err != nil {
		return err
	}
	c := a.console()
	all := make([]comparedSet, len(sets))
	for i, set := range sets {
		if all[i], err = set.compare(c); err != nil {
			return err
		}
	}
	if asJSON {
		err = a.json(publishedJSON(all))
	} else {
		for i := range all {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			if err = all[i].print(a.out); err != nil {
				break
			}
		}
	}
	if err == nil && slices.ContainsFunc(all, func(s comparedSet) bool { return s.off() }) {
		err = codeError(exitFailed)
	}
	return err
}
