package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// table is a CSV file that is being made. An empty field was not measured.
type table struct{ rows [][]string }

func newTable(columns ...string) *table { return &table{[][]string{columns}} }

func (t *table) add(fields ...any) {
	row := make([]string, len(fields))
	for i, f := range fields {
		row[i] = fmt.Sprint(f)
	}
	t.rows = append(t.rows, row)
}

func (t *table) write(folder, name string) error {
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	err = csv.NewWriter(file).WriteAll(t.rows)
	return cmp.Or(err, file.Close())
}

// figure returns a number in a table; 0 means not measured, and becomes empty.
func figure(x float64, digits int) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// mebi converts bytes to MiB; 0 becomes empty.
func mebi(bytes int64) string { return figure(float64(bytes)/(1<<20), 1) }

// writeEstimates writes estimates.csv, which carma estimate --evaluate reads.
// actual_mib is the memory of the process, process_mib that as NVML listed it.
func (r *report) writeEstimates(folder string) error {
	t := newTable("measured", "model", "dataset", "batch_size", "gpus", "size", "optimizer", "precision", "networks", "torch", "actual_mib", "status",
		"process_mib", "reserved_mib", "allocated_mib", "beyond_mib", "estimate_mib", "upper_mib", "estimated_context_mib", "step_s")
	month, _, _ := strings.Cut(r.Date, " ")
	for _, row := range r.Trained {
		beyond := row.Beyond()
		if row.Reserved > 0 && beyond == 0 {
			beyond = r.overhead()
		}
		with := row.Settings
		t.add(month[:min(7, len(month))], row.model, row.dataset, row.batch, 1, with["size"], with["optimizer"], with["precision"], with["networks"], with["torch"],
			mebi(r.actual(row)), row.Status, mebi(row.Process), mebi(row.Reserved), mebi(row.Allocated), mebi(beyond),
			mebi(row.Estimate), mebi(row.Upper), mebi(row.EstimatedContext), figure(row.StepSeconds, 6))
	}
	return t.write(folder, "estimates.csv")
}

// writePairs writes the tables that carma replay --pairs and test/lab/fit read:
// pairs.csv, pairs-mps.csv for those by MPS, and profiles.csv for both.
// train_loop_s is the time of an epoch at the measured rate.
func (r *report) writePairs(folder string) error {
	t := newTable("workload_id", "model", "dataset", "batch_size", "epochs", "gpus", "train_loop_s", "smact_mean", "smocc_mean", "drama_mean",
		"power_w", "metrics", "coarse", "steps_per_s", "again")
	for _, to := range r.Paired {
		for _, p := range to.Profiles {
			t.addProfile(p, to.suffix())
		}
	}
	if err := t.write(folder, "profiles.csv"); err != nil {
		return err
	}
	for _, to := range r.Paired {
		if len(to.Pairs) == 0 {
			continue
		}
		t = newTable("job_a", "job_b", "solo_profile_a", "solo_profile_b", "overlap_speed_a", "overlap_speed_b", "overlap_speed_sum", "steps_per_s_a", "steps_per_s_b")
		for _, p := range to.Pairs {
			a, b := to.Profiles[p.A], to.Profiles[p.B]
			x, y := p.RateA/a.Rate, p.RateB/b.Rate
			t.add(a.id(), b.id(), a.id()+to.suffix(), b.id()+to.suffix(), figure(x, 4), figure(y, 4), figure(x+y, 4), figure(p.RateA, 4), figure(p.RateB, 4))
		}
		if err := t.write(folder, "pairs"+to.suffix()+".csv"); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) addProfile(p profile, suffix string) {
	a := p.Activity
	activity := []any{"", "", "", "", "", ""}
	if a.readings > 0 {
		activity = []any{strconv.FormatFloat(a.SMACT, 'f', 4, 64), strconv.FormatFloat(a.SMOCC, 'f', 4, 64), strconv.FormatFloat(a.DRAMA, 'f', 4, 64),
			figure(a.PowerW, 1), a.Metrics, a.Coarse}
	}
	row := []any{p.id() + suffix, p.model, p.dataset, p.batch, 1, 1, figure(float64(p.Samples/p.batch)/p.Rate, 2)}
	t.add(append(append(row, activity...), figure(p.Rate, 4), figure(p.Again, 4))...)
}

// readRates reads the steps per second of an earlier run's tasks, by id.
func readRates(path string) (map[string]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	id, rate := slices.Index(rows[0], "workload_id"), slices.Index(rows[0], "steps_per_s")
	if id < 0 || rate < 0 {
		return nil, fmt.Errorf("%s: no columns workload_id and steps_per_s; give the profiles.csv of an earlier run", path)
	}
	rates := map[string]float64{}
	for _, row := range rows[1:] {
		if x, err := strconv.ParseFloat(row[rate], 64); err == nil && x > 0 {
			rates[row[id]] = x
		}
	}
	return rates, nil
}

// writeSuite writes suite.csv, with a row for each mode, and tasks.csv, with a
// row for each task in each mode.
func (r *report) writeSuite(folder string) error {
	t := newTable("mode", "tasks", "succeeded", "ooms", "makespan_s", "energy_j", "slowdown_mean", "slowdown_max", "why_not")
	each := newTable("mode", "task", "phase", "attempts", "ooms", "end_s", "execution_s", "slowdown", "step_s", "step_slowdown",
		"estimate_mib", "method", "grant_mib", "peak_mib", "curve_points", "reserved_mib", "beyond_mib", "reason")
	for _, run := range r.Suite {
		mean, most := r.slowdown(run)
		t.add(run.Mode, len(run.Tasks), run.Succeeded, run.OOMs, figure(run.Makespan, 1), figure(run.EnergyJ, 0), figure(mean, 3), figure(most, 3), cmp.Or(run.Why, run.Note))
		for i, task := range run.Tasks {
			alone := r.Suite[0].Tasks[i]
			each.add(run.Mode, task.id(), task.Phase, task.Attempts, task.OOMs, figure(task.Ended, 1), figure(task.Execution, 1),
				figure(task.Execution/alone.Execution, 3), figure(task.StepSeconds, 6), figure(task.StepSeconds/alone.StepSeconds, 3),
				mebi(task.Estimate), task.EstimatedMethod, mebi(task.Grant), mebi(task.Peak), task.Points, mebi(task.Reserved), mebi(task.beyond()), task.Reason)
		}
	}
	if err := t.write(folder, "suite.csv"); err != nil {
		return err
	}
	return each.write(folder, "tasks.csv")
}

// beyond returns the memory of a task as carma saw it, beyond its PyTorch's reserved memory, in
// bytes: the CUDA context, if carma's readings met the peak. It is 0 if unknown.
func (t taskRun) beyond() int64 {
	if t.Reserved == 0 || t.Peak == 0 {
		return 0
	}
	return t.Peak - t.Reserved
}

// slowdown returns the slowdown of a run's tasks against the first run, which is exclusive:
// mean and largest.
func (r *report) slowdown(run suiteRun) (mean, most float64) {
	n := 0
	for i, task := range run.Tasks {
		alone := r.Suite[0].Tasks[i].Execution
		if task.Execution <= 0 || alone <= 0 {
			continue
		}
		x := task.Execution / alone
		mean, most, n = mean+x, max(most, x), n+1
	}
	if n == 0 {
		return 0, 0
	}
	return mean / float64(n), most
}
