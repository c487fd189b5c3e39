package main

import (
	"go/format"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carma/configs/workloads"
	"carma/mapper/sim"
)

// pairsOf makes pairs whose speeds are what a model says.
func pairsOf(m sim.Model) []pair {
	tasks := []workload{
		{"a", "x", sim.Load{SMACT: 0.82, DRAMA: 0.41, Step: 0.27}}, {"b", "x", sim.Load{SMACT: 0.80, DRAMA: 0.44, Step: 0.08}},
		{"c", "y", sim.Load{SMACT: 0.69, DRAMA: 0.47, Step: 0.10}}, {"d", "y", sim.Load{SMACT: 0.60, DRAMA: 0.33, Step: 0.16}},
		{"e", "z", sim.Load{SMACT: 0.17, DRAMA: 0.05, Step: 0.015}}, {"f", "z", sim.Load{SMACT: 0.22, DRAMA: 0.02, Step: 0.034}},
	}
	var pairs []pair
	for i, a := range tasks {
		for _, b := range tasks[i+1:] {
			s := m.Speeds([]sim.Load{a.load, b.load})
			pairs = append(pairs, pair{a, b, s[0], s[1]})
		}
	}
	return pairs
}

// TestFitFindsTheModel: from speeds without noise the coefficients come back.
func TestFitFindsTheModel(t *testing.T) {
	want := sim.Model{Block: 9, Power: 8, Ceiling: 0.82, Turn: 1.5, DRAM: 0.9}
	pairs := pairsOf(want)
	got := fit(pairs)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"block", got.Block, want.Block}, {"power", got.Power, want.Power}, {"ceiling", got.Ceiling, want.Ceiling},
		{"turn", got.Turn, want.Turn}, {"dram", got.DRAM, want.DRAM},
	} {
		if math.Abs(c.got-c.want) > 0.01*c.want {
			t.Errorf("%s %.4f, want %.4f", c.name, c.got, c.want)
		}
	}
	if again := fit(pairs); again != got {
		t.Error("a second fit differs")
	}
	r := crossValidate(pairs, func(w workload) string { return w.family })
	if len(r.speed) != 2*(3+4*2*3) { // pairs within a family once, between families twice
		t.Errorf("%d predictions", len(r.speed))
	}
	r = crossValidate(pairs, func(w workload) string { return w.id })
	if e := meanAbs(r.speed); e > 0.02 {
		t.Errorf("cross-validated error %.3f without noise", e)
	}
}

func TestResiduals(t *testing.T) {
	if q := quantile([]float64{-4, 1, 2, -3}, 0.5); q != 2.5 {
		t.Errorf("median %v", q)
	}
	if quantile(nil, 0.5) != 0 || mean(nil) != 0 {
		t.Error("nothing has errors")
	}
	var r residuals
	p := pairsOf(sim.Fitted)[3] // a and e: heavy and light
	p.speedA, p.speedB = p.speedA-0.1, p.speedB+0.2
	r.add(p, sim.Fitted)
	if len(r.light) != 1 || math.Abs(r.light[0]+0.2) > 1e-9 || math.Abs(r.heavy[0]-0.1) > 1e-9 || math.Abs(r.sum[0]+0.1) > 1e-9 {
		t.Errorf("%+v", r)
	}
}

const (
	profilesCSV = `workload_id,model,dataset,batch_size,epochs,gpus,gpu_label,train_loop_s,end_to_end_s,smact_mean,smocc_mean,drama_mean
v,vgg16,imagenet,128,1,1,gpu,2668.29,2673.42,0.8263,0.4212,0.4108
r,resnet18,cifar100,64,20,1,gpu,239.16,242.17,0.1653,0.0617,0.0490
g,gpt2_xl,wikitext2,2,1,1,gpu,14397.6,14448.63,,,
`
	pairsCSV = `job_a,job_b,solo_profile_a,solo_profile_b,overlap_speed_a,overlap_speed_b
r,v,r,v,0.3205,0.9801
`
)

func TestReadAndWrite(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	profiles := file("profiles.csv", profilesCSV)
	pairs, err := read(file("pairs.csv", pairsCSV), profiles)
	if err != nil {
		t.Fatal(err)
	}
	if p := pairs[0]; p.a.load.SMACT != 0.1653 || math.Abs(p.b.load.Step-0.2666) > 1e-3 || p.speedB != 0.9801 || p.b.family != "vgg16 imagenet" {
		t.Errorf("%+v", p)
	}
	if s := shippedErrors(pairs); !strings.HasPrefix(s, "shipped coefficients: ") || strings.Count(s, "\n") != 1 {
		t.Errorf("%s", s)
	}
	for old, want := range map[string]string{
		"r,v,r,v": "pairs.csv:2: no solo profile for r or v", "0.3205": "pairs.csv:2: strconv.ParseFloat",
		pairsCSV: "empty",
	} {
		broken := strings.Replace(pairsCSV, old, "", 1)
		if old == "r,v,r,v" {
			broken = strings.Replace(pairsCSV, old, "r,v,r,g", 1) // no activity: no profile
		}
		if _, err := read(file("pairs.csv", broken), profiles); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	out := filepath.Join(dir, "coefficients.go")
	if err := write(out, sim.Fitted, 1, "one: speed 1; sum 2\ntwo: speed 3"); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := format.Source(source); err != nil || string(again) != string(source) || !strings.Contains(string(source), "//   - one: speed 1;\n//     sum 2\n//   - two: speed 3\n") {
		t.Errorf("%s", source)
	}
}

// TestStepsAreTheCatalogues: this command and the simulated tasks mean the
// same by a step.
func TestStepsAreTheCatalogues(t *testing.T) {
	for _, p := range workloads.All() {
		row := map[string]string{
			"model": p.Model, "dataset": p.Dataset, "batch_size": strconv.Itoa(p.BatchSize), "epochs": strconv.Itoa(p.Epochs),
			"end_to_end_s": strconv.FormatFloat(p.Solo.EndToEnd.Seconds(), 'f', -1, 64),
		}
		if p.Solo.TrainLoop > 0 {
			row["train_loop_s"] = strconv.FormatFloat(p.Solo.TrainLoop.Seconds(), 'f', -1, 64)
		}
		if got, want := step(row), p.StepTime().Seconds(); math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: step of %g s, catalogue %g s", p.Name, got, want)
		}
	}
}
