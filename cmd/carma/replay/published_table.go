package replay

import (
	"fmt"
	"io"
	"strconv"

	"carma/cmd/carma/cli"
	"carma/mapper/sim/study"
)

func printPublished(w io.Writer, s *study.ComparedSet) error {
	fmt.Fprintf(w, "%s\n%s\n", s.Title, s.Source)
	t := &cli.Table{Columns: []cli.Column{
		{Title: "TRACE"}, {Title: "GPUS", Right: true}, {Title: "POLICY"}, {Title: "METRIC"}, {Title: "OURS", Right: true},
		{Title: "PUBLISHED", Right: true}, {Title: "DIFFERENCE", Right: true}, {Title: "WITHIN", Right: true}, {Title: ""},
	}}
	for _, l := range s.Lines {
		t.Add(l.Trace, strconv.Itoa(l.GPUs), l.Policy, l.Metric, figureText(l.Ours, l.Value), figureText(l.Value, l.Value),
			fmt.Sprintf("%+.1f %%", 100*l.Difference()), fmt.Sprintf("%.0f %%", 100*l.Tolerance), verdictText(l.OK(), l.Bound))
	}
	if err := t.Write(w, 0); err != nil {
		return err
	}
	if s.Rank != "" {
		fmt.Fprintf(w, "order of the policies by %s: rank correlation %.2f (Spearman), at least %.2f: %s\n",
			s.Rank, s.Correlation, s.LeastRank, verdictText(s.Correlation >= s.LeastRank, true))
	}
	return nil
}

// figureText formats a value with three digits, relative to the size of the published
// value.
func figureText(v, published float64) string {
	switch {
	case published >= 100:
		return fmt.Sprintf("%.0f", v)
	case published >= 2:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func verdictText(ok, bound bool) string {
	switch {
	case ok:
		return "ok"
	case bound:
		return "off, a bound"
	}
	return "off"
}

// publishedJSON returns the same as JSON.
func publishedJSON(all []study.ComparedSet) any {
	type lineJSON struct {
		Trace      string  `json:"trace"`
		GPUs       int     `json:"gpus"`
		Policy     string  `json:"policy"`
		Metric     string  `json:"metric"`
		Ours       float64 `json:"ours"`
		Published  float64 `json:"published"`
		Difference float64 `json:"difference"`
		Tolerance  float64 `json:"tolerance"`
		Bound      bool    `json:"bound"`
		OK         bool    `json:"ok"`
	}
	type setJSON struct {
		Name    string     `json:"name"`
		Title   string     `json:"title"`
		Source  string     `json:"source"`
		Figures []lineJSON `json:"figures"`
		Rank    *float64   `json:"rank_correlation,omitempty"`
	}
	list := make([]setJSON, len(all))
	for i := range all {
		s := &all[i]
		list[i] = setJSON{Name: s.Name, Title: s.Title, Source: s.Source}
		for _, l := range s.Lines {
			list[i].Figures = append(list[i].Figures, lineJSON{l.Trace, l.GPUs, l.Policy, l.Metric, l.Ours, l.Value, l.Difference(), l.Tolerance, l.Bound, l.OK()})
		}
		if s.Rank != "" {
			list[i].Rank = &s.Correlation
		}
	}
	return struct {
		Sets []setJSON `json:"sets"`
	}{list}
}
