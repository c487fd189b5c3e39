package report

import (
	"strings"
	"testing"
	"time"
)

// TestSummary checks that there is a row per policy, with ratios to policy exclusive except in
// the row of exclusive itself, and that the best values are marked unless all are equal.
func TestSummary(t *testing.T) {
	d := simulated(t, 20, 2, "magm", "exclusive")
	header, rows := summary(d.Runs, &d.Runs[1], "t1")
	if len(rows) != 2 || len(rows[0].Cells) != len(header) || rows[0].Policy.Name != "magm" || !rows[1].Baseline || rows[0].Baseline {
		t.Fatalf("%d rows: %v", len(rows), rows)
	}
	if got, want := rows[0].Cells[1].Ratio, Ratio(d.Runs[0].Metrics.RatioTo(d.Runs[1].Metrics).MeanJCT); got != want || got == "" {
		t.Errorf("mean JCT %s, want %s", got, want)
	}
	for i, c := range rows[1].Cells {
		if c.Ratio != "" {
			t.Errorf("exclusive: %s is %s of itself", header[i], c.Ratio)
		}
	}
	if !rows[0].Cells[0].Best || rows[1].Cells[0].Best || !rows[1].Cells[5].Best || rows[0].Cells[5].Best {
		t.Errorf("the best makespan and the fewest OOMs are not marked: %v", rows)
	}
	d.Runs[0].Metrics.Failed = 3
	_, rows = summary(d.Runs, &d.Runs[1], "t1")
	if rows[0].Cells[0].Ratio != "3 failed" || rows[0].Cells[0].Best || rows[1].Cells[0].Best {
		t.Errorf("makespan %v of a run with failures", rows[0].Cells[0])
	}
	same := []Run{d.Runs[1], d.Runs[1]}
	same[1].Policy = "again"
	for _, r := range same {
		for i, c := range r.cellsOf(same) {
			if c.Best {
				t.Errorf("%s is best where all are alike", header[i])
			}
		}
	}
}

func (r Run) cellsOf(runs []Run) (all []cell) {
	_, rows := summary(runs, &runs[0], "t1")
	for _, row := range rows {
		all = append(all, row.Cells...)
	}
	return all[:len(all)/len(rows)]
}

// TestReference checks that ratios are relative to the named run, and that this run has its own
// row if it is not one of the policies.
func TestReference(t *testing.T) {
	d := simulated(t, 20, 2, "magm", "exclusive")
	other := d.Runs[1]
	d.Runs, d.Reference = d.Runs[:1], &other
	s, err := newSection(&d, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := Ratio(d.Runs[0].Metrics.RatioTo(other.Metrics).MeanJCT)
	if s.RatioTo != "exclusive" || len(s.Rows) != 2 || !s.Rows[0].Baseline || s.Rows[0].Run != "" || s.Rows[1].Cells[1].Ratio != want {
		t.Errorf("relative to %s: %+v, want %s", s.RatioTo, s.Rows, want)
	}
}

// TestOutcome: the sentence names the policy with the shortest makespan, the one with the
// shortest mean JCT, and the policies that are left out.
func TestOutcome(t *testing.T) {
	run := func(policy string, makespan, jct time.Duration, ooms, failed int) Run {
		r := Run{Policy: policy}
		r.Metrics.Tasks, r.Metrics.Makespan, r.Metrics.MeanJCT, r.Metrics.OOMs, r.Metrics.Failed = 10, makespan, jct, ooms, failed
		return r
	}
	base := run("Exclusive", 10*time.Hour, 5*time.Hour, 0, 0)
	quick, short := run("magm", 5*time.Hour, 2*time.Hour, 7, 0), run("carma", 6*time.Hour, time.Hour, 1, 0)
	for want, runs := range map[string][]Run{
		"Of 2 policies, magm is the first with all tasks done, after 5h00m (0.500 of Exclusive); carma has the shortest mean JCT, 1h00m (0.200 of Exclusive). Under carma 1 attempt ran out of GPU memory.": {quick, short},
		"Of 2 policies, magm is the first with all tasks done, after 5h00m (0.500 of Exclusive), and has the shortest mean JCT, 2h00m (0.400 of Exclusive). Under magm 7 attempts ran out of GPU memory.":   {quick, base},
		"Exclusive does all tasks in 10h00m; a task is done after 5h00m on average. Under Exclusive no attempt ran out of GPU memory.":                                                                      {base},
		"No policy brought all tasks to their end.": {run("lug", 1, 1, 0, 3)},
		"": nil,
	} {
		d := Data{Runs: runs, Reference: &base}
		if got := d.outcome(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	d := Data{Runs: []Run{short, run("lug", 1, 1, 0, 3)}, Reference: &base}
	if got := d.outcome(); !strings.HasSuffix(got, " 1 policy did not bring all tasks to their end, and is left out of this comparison.") || !strings.Contains(got, "carma is the first") {
		t.Error(got)
	}
}
