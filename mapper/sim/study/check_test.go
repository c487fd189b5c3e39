package study

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"carma/configs/servers"
	"carma/mapper/sim"
)

// TestReplayBounds runs the shipped bounds.
func TestReplayBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	sections, err := ReadBounds("../../../test/replay-bounds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range sections {
		s := &Study{StartUp: StartUp}
		s.Under(b.Conditions)
		if s.Rows, err = b.Rows(Rules{}); err != nil {
			t.Fatal(err)
		}
		if s.Traces, err = b.Read(); err != nil {
			t.Fatal(err)
		}
		if s.Server, err = Server("sim:"+servers.Default, b.Count); err != nil {
			t.Fatal(err)
		}
		if err := b.Fit(s.Traces, s.Rows); err != nil {
			t.Fatal(err)
		}
		all, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		short, total := b.Check(all, s.Rows)
		if total == 0 {
			t.Error("no bound was looked at")
		}
		for _, f := range short {
			t.Errorf("%s:%d: %s, %s: %s", b.File, f.Line, f.Trace, f.Label, f.What)
		}
	}
}

// TestSections checks that each section of the file has its own conditions.
func TestSections(t *testing.T) {
	const bounds = "bounds: [{trace: smoke-5, policy: magm, metric: ooms, max: 0}]\n"
	sections, err := parseBounds("f", []byte("schema: carma/bounds/v1\n"+bounds+
		"---\n# remark\nschema: carma/bounds/v1\nknow: nothing\nrepeats: false\ntruth: perturbed,growth=0.3,seed=2\nsharing: time-slicing\ncoarse: true\n"+bounds))
	if err != nil || len(sections) != 2 {
		t.Fatal(len(sections), err)
	}
	if got, want := sections[0].Conditions, (Conditions{Know: KnowAll}); !reflect.DeepEqual(got, want) {
		t.Errorf("first: %+v", got)
	}
	want := Conditions{Know: KnowNothing, Distinct: true, Sharing: sim.TimeSlicing, Coarse: true,
		Truth: sim.Truth{Pair: 0.12, Time: 0.54, Activity: 0.2, Growth: 0.3, Seed: 2}}
	if got := sections[1].Conditions; !reflect.DeepEqual(got, want) {
		t.Errorf("second: %+v", got)
	}
	if line := sections[1].list[0].line; line != 11 {
		t.Errorf("the second section's bound is in line %d of the file", line)
	}
}

func TestWrongBounds(t *testing.T) {
	const head = "schema: carma/bounds/v1\nbounds:\n  - "
	for text, want := range map[string]string{
		"":                                   `f:1: no bounds; the first line is schema: carma/bounds/v1`,
		"[]":                                 `f:1: a map of schema, traces, gpu-count, know, repeats, truth, sharing, coarse, suspend, urgent, bounds belongs here`,
		"schema: x":                          `f:1: schema is "x"; this carma reads carma/bounds/v1`,
		"schema: carma/bounds/v1":            `f:1: no bounds; write for example`,
		"schema: carma/bounds/v1\nbouns: []": `f:2: unknown key "bouns"; nearest: bounds`,
		head + "{trace: smoke-5, policy: magm, metric: ooms, max: 0}\n---\nschema: x": `f:5: schema is "x"; this carma reads carma/bounds/v1`,
		"schema: carma/bounds/v1\nknow: nohting":                                      `f:2: unknown know "nohting"; nearest: nothing`,
		"schema: carma/bounds/v1\nrepeats: no":                                        `f:2: unknown repeats "no"; nearest: `,
		"schema: carma/bounds/v1\nsharing: mp":                                        `f:2: unknown sharing "mp"; nearest: mps`,
		"schema: carma/bounds/v1\ntruth: pear=1":                                      `f:2: truth: unknown key "pear"; nearest: pair`,
		"schema: carma/bounds/v1\ngpu-count: 0":                                       `f:2: gpu-count: "0" is not a whole number from 1 on`,
		"schema: carma/bounds/v1\ntraces: {}":                                         `f:2: a list of traces belongs here`,
		"a: b: c":                                                                     `f:1: mapping values are not allowed`,
		"\n\n- a\nb":                                                                  `f:`,
		"bounds: 3":                                                                   `f:1: bounds: a list belongs here`,
		head + "3":                                                                    `f:3: a map of trace, traces, policy,`,
		head + "{trace: geomean, policy: magm, metric: makespan_ratio}":               `f:3: a bound has trace, policy, metric, and max or min`,
		head + "{trace: geomean, policy: mgam, metric: makespan_ratio, max: 1}":     `f:3: unknown policy "mgam"; nearest: magm`,
		head + "{trace: geomean, policy: magm,lug, metric: x}":                      `f:3: `,
		head + "{trace: geomean, policy: magm, metric: makespan-ratio, max: 1}":     `f:3: unknown metric "makespan-ratio"; nearest: makespan_ratio`,
		head + "{trace: geomean, policy: magm, metric: ooms, max: few}":             `f:3: "few" is not a number`,
		head + "{trace: geomean, policy: magm, metric: ooms, most: 3}":              `f:3: unknown key "most"; nearest: `,
		head + "{trace: geomean, policy: magm, estimator: oracel, max: 3}":          `f:3: unknown estimator "oracel"; nearest: oracle`,
		head + "{trace: geomean, policy: magm, metric: ooms, max: 3, was: few}":     `f:3: "few" is not a number`,
		head + "{traces: [geomean, a], policy: magm, metric: ooms, max: 3, was: 1}": `f:3: was has 1 values for 2 traces`,
		head + "{trace: a, trace: b, policy: magm, metric: ooms, max: 3}":           `f:3: `,
		head + "\n    trace: geomean\n    policy: magm\n    metric: oms\n":          `f:6: unknown metric "oms"; nearest: ooms`,
	} {
		_, err := parseBounds("f", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzBounds checks that any file is read, or rejected in one line.
func FuzzBounds(f *testing.F) {
	shipped, err := os.ReadFile("../../../test/replay-bounds.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(shipped))
	f.Add("schema: carma/bounds/v1\nbounds:\n  - {traces: [a, ~], policy: OR-RR, metric: ooms, min: .nan}\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		sections, err := parseBounds("f", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		for _, b := range sections {
			if rows, err := b.Rows(Rules{}); err != nil || len(rows) == 0 || len(b.lines) != len(b.traces) {
				t.Errorf("%q: %d rows, %v", text, len(rows), err)
			}
		}
	})
}
