package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carma/cmd/carma/cli"
	"carma/mapper/sim/pairs"
)

// classes returns the classes of errors, in the order of the table.
func (s *scoredPairs) classes() []struct {
	name   string
	errors pairs.Errors
} {
	return []struct {
		name   string
		errors pairs.Errors
	}{
		{"speed of a task", s.scores.Speed}, {"sum of a pair", s.scores.Sum},
		{"light one beside a heavy one", s.scores.Light}, {"heavy one beside a light one", s.scores.Heavy},
	}
}

// print writes the table for people.
func (s *scoredPairs) print(w io.Writer) error {
	title := fmt.Sprintf(": %d pairs scored, %d skipped", len(s.Pairs), len(s.Skipped))
	fmt.Fprintln(w, cli.Shorten(cli.Printable(s.file), max(1, width-len(title)))+title)
	t := &cli.Table{Columns: []cli.Column{
		{Title: "PREDICTED - MEASURED"}, {Title: "N", Right: true}, {Title: "MEDIAN |E|", Right: true},
		{Title: "MEAN |E|", Right: true}, {Title: "P90 |E|", Right: true}, {Title: "BIAS", Right: true},
	}}
	for _, c := range s.classes() {
		row := []string{c.name, fmt.Sprint(len(c.errors)), "-", "-", "-", "-"}
		if e := c.errors; len(e) > 0 {
			row = append(row[:2], fmt.Sprintf("%.3f", e.Median()), fmt.Sprintf("%.3f", e.Mean()), fmt.Sprintf("%.3f", e.Quantile(0.9)), fmt.Sprintf("%+.3f", e.Bias()))
		}
		t.Add(row...)
	}
	if err := t.Write(w, width); err != nil {
		return err
	}
	fmt.Fprintf(w, "A speed is relative to alone. Light: SMACT under %.2f; heavy: over %.2f.\n", pairs.LightSMACT, pairs.HeavySMACT)
	for _, note := range s.notes() {
		fmt.Fprintln(w, cli.Shorten(cli.Printable(note), width))
	}
	return nil
}

// notes lists skipped and less reliable results, a line each.
func (s *scoredPairs) notes() []string {
	var notes []string
	if n := s.wholeRuns(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d pairs by their speeds over whole runs: overlap speeds are not there", n))
	}
	if n := s.stepsUnknown(); n > 0 {
		notes = append(notes, fmt.Sprintf("%d tasks whose step is not known: taken from their SMACT", n))
	}
	lines, reasons := map[string][]string{}, []string(nil)
	for _, skipped := range s.Skipped {
		if lines[skipped.Reason] == nil {
			reasons = append(reasons, skipped.Reason)
		}
		lines[skipped.Reason] = append(lines[skipped.Reason], fmt.Sprint(skipped.Line))
	}
	for _, r := range reasons {
		where := lines[r]
		text := fmt.Sprintf("skipped %d: %s; line %s", len(where), r, strings.Join(where[:min(5, len(where))], ", "))
		if len(where) > 5 {
			text += ", ..."
		}
		notes = append(notes, text)
	}
	return notes
}

func (s *scoredPairs) wholeRuns() int {
	n := 0
	for _, p := range s.Pairs {
		if p.WholeRun {
			n++
		}
	}
	return n
}

// stepsUnknown counts the tasks of scored pairs, each once.
func (s *scoredPairs) stepsUnknown() int {
	var ids []string
	for _, p := range s.Pairs {
		for _, t := range []pairs.Task{p.A, p.B} {
			if t.Load.Step == 0 {
				ids = append(ids, t.ID)
			}
		}
	}
	slices.Sort(ids)
	return len(slices.Compact(ids))
}

// errorsJSON contains errors of one kind (predicted minus measured): the median, mean and
// 90th percentile of absolute values.
type errorsJSON struct {
	N      int     `json:"n"`
	Median float64 `json:"median_abs"`
	Mean   float64 `json:"mean_abs"`
	P90    float64 `json:"p90_abs"`
	Bias   float64 `json:"bias"`
}

func errorsOf(e pairs.Errors) errorsJSON {
	return errorsJSON{len(e), e.Median(), e.Mean(), e.Quantile(0.9), e.Bias()}
}

// pairJSON is one scored pair. Speeds are relative to running alone.
type pairJSON struct {
	Line         int     `json:"line"`
	A            string  `json:"profile_a"`
	B            string  `json:"profile_b"`
	MeasuredA    float64 `json:"measured_a"`
	MeasuredB    float64 `json:"measured_b"`
	MeasuredSum  float64 `json:"measured_sum"`
	WholeRun     bool    `json:"whole_run"`
	PredictedA   float64 `json:"predicted_a"`
	PredictedB   float64 `json:"predicted_b"`
	PredictedSum float64 `json:"predicted_sum"`
	ErrorA       float64 `json:"error_a"`
	ErrorB       float64 `json:"error_b"`
	ErrorSum     float64 `json:"error_sum"`
	Light        string  `json:"light"` // "a" or "b" if it is next to a heavy one, otherwise empty
}

type skippedJSON struct {
	Line   int    `json:"line"`
	A      string `json:"profile_a"`
	B      string `json:"profile_b"`
	Reason string `json:"reason"`
}

// json returns the same as JSON, with every pair.
func (s *scoredPairs) json() any {
	list := make([]pairJSON, len(s.Pairs))
	for i, p := range s.Pairs {
		a, b := s.predicted[i][0], s.predicted[i][1]
		list[i] = pairJSON{
			p.Line, p.A.ID, p.B.ID, p.SpeedA, p.SpeedB, p.SpeedA + p.SpeedB, p.WholeRun,
			a, b, a + b, a - p.SpeedA, b - p.SpeedB, a - p.SpeedA + b - p.SpeedB, lightOf(p),
		}
	}
	skipped := make([]skippedJSON, len(s.Skipped))
	for i, p := range s.Skipped {
		skipped[i] = skippedJSON(p)
	}
	return struct {
		File         string        `json:"file"`
		Scored       int           `json:"scored"`
		Skipped      []skippedJSON `json:"skipped"`
		WholeRuns    int           `json:"whole_runs"`
		StepsUnknown int           `json:"steps_unknown"`
		Speed        errorsJSON    `json:"speed"`
		Sum          errorsJSON    `json:"sum"`
		Light        errorsJSON    `json:"light_beside_heavy"`
		Heavy        errorsJSON    `json:"heavy_beside_light"`
		Pairs        []pairJSON    `json:"pairs"`
	}{
		s.file, len(s.Pairs), skipped, s.wholeRuns(), s.stepsUnknown(),
		errorsOf(s.scores.Speed), errorsOf(s.scores.Sum), errorsOf(s.scores.Light), errorsOf(s.scores.Heavy), list,
	}
}

func lightOf(p pairs.Pair) string {
	lightIsA, ok := p.LightBesideHeavy()
	switch {
	case ok && lightIsA:
		return "a"
	case ok:
		return "b"
	}
	return ""
}
