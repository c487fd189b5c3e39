package pairs

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"carma/configs/workloads"
	"carma/mapper/sim"
)

const (
	profilesCSV = `# a comment
workload_id,model,dataset,batch_size,epochs,gpus,gpu_label,train_loop_s,end_to_end_s,smact_mean,smocc_mean,drama_mean
v,vgg16,imagenet,128,1,1,gpu,2668.29,2673.42,0.8263,0.4212,0.4108
r,resnet18,cifar100,64,20,1,gpu,239.16,242.17,0.1653,0.0617,0.0490
g,gpt2_xl,wikitext2,2,1,1,gpu,14397.6,14448.63,,,
two,gpt2_large,wikitext2,8,1,2,gpu_a,3943.9,3981.23,0.8418,0.2687,0.2139
two,gpt2_large,wikitext2,8,1,2,gpu_b,3943.9,3981.23,0.7969,0.2359,0.1613
`
	pairsHeader = "job_a,solo_profile_a,solo_profile_b,speed_a,speed_b,overlap_speed_a,overlap_speed_b\n"
	pairsCSV    = pairsHeader + "x,r,v,0.4,0.99,0.3205,0.9801\n"
)

func profiles(t testing.TB) map[string]Profile {
	t.Helper()
	ps, err := ReadProfiles("profiles.csv", strings.NewReader(profilesCSV))
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

func TestRead(t *testing.T) {
	ps := profiles(t)
	if p := ps["v"]; p.Load.SMACT != 0.8263 || p.Load.DRAMA != 0.4108 || math.Abs(p.Load.Step-0.2666) > 1e-3 || p.Family != "vgg16 imagenet" || !p.Measured {
		t.Errorf("%+v", p)
	}
	if len(ps) != 4 || ps["g"].Measured || ps["two"].GPUs != 2 || ps["two"].Load.SMACT != 0.8418 {
		t.Errorf("%+v", ps)
	}
	// Other columns, in another order, with text around numbers.
	content := "\ufeffOverlap_Speed_B , note,overlap_speed_a,solo_profile_b,solo_profile_a,speed_a,speed_b\n" +
		"0.9801,\"a, b\", 0.3205 ,v,r,,\n" +
		",,,v,r,0.4,0.99\n" +
		"1.02,,,v,v,0.4,0.5\n" + // a single overlap speed does not count
		"0.9,,0.9,v,unheard,,\n" +
		"0.9,,0.9,g,r,,\n" +
		",,0.9,r,v,,1\n"
	m, err := Read("pairs.csv", strings.NewReader(content), ps)
	if err != nil {
		t.Fatal(err)
	}
	want := []Pair{
		{2, ps["r"].Task, ps["v"].Task, 0.3205, 0.9801, false},
		{3, ps["r"].Task, ps["v"].Task, 0.4, 0.99, true},
		{4, ps["v"].Task, ps["v"].Task, 0.4, 0.5, true},
	}
	for i, p := range m.Pairs {
		if i >= len(want) || p != want[i] {
			t.Errorf("%+v", p)
		}
	}
	skipped := []Skipped{
		{5, "unheard", "v", "unknown profile unheard"},
		{6, "r", "g", "activity of g was not measured"},
		{7, "v", "r", "no speeds"},
	}
	if len(m.Pairs) != len(want) || len(m.Skipped) != len(skipped) {
		t.Fatalf("%d pairs, skipped %+v", len(m.Pairs), m.Skipped)
	}
	for i, s := range m.Skipped {
		if s != skipped[i] {
			t.Errorf("%+v", s)
		}
	}
}

func TestWrongPairs(t *testing.T) {
	ps := profiles(t)
	for _, c := range []struct{ old, new, want string }{
		{pairsCSV, "", "pairs.csv:1: empty; the first line names the columns"},
		{pairsCSV, "\n# nothing\n", "pairs.csv:1: empty"},
		{pairsCSV, pairsHeader, "pairs.csv:1: no pairs after the header"},
		{pairsCSV, "#\n#\n" + pairsHeader, "pairs.csv:3: no pairs after the header"},
		{"solo_profile_b", "solo", "pairs.csv:1: no column solo_profile_b"},
		{"speed_a,speed_b,overlap_speed_a,", "speed_a,x,y,", "pairs.csv:1: no columns overlap_speed_a and overlap_speed_b, nor speed_a and speed_b"},
		{"job_a", "speed_a", `pairs.csv:1: column "speed_a" a second time`},
		{"0.3205", "fast", `pairs.csv:2: overlap_speed_a: "fast" is not a number`},
		{"0.9801", "NaN", `pairs.csv:2: overlap_speed_b: "NaN" is not a number`},
		{"0.9801", "inf", `pairs.csv:2: overlap_speed_b: "inf" is not a number`},
		{"0.9801", "1e999", `pairs.csv:2: overlap_speed_b: "1e999" is not a number`},
		{"0.9801", "1e10", `pairs.csv:2: overlap_speed_b: 1e10 is more than 1e+09`},
		{"0.9801", "-0.5", `pairs.csv:2: overlap_speed_b: -0.5 is negative`},
		{"0.99,0.3205", "-2,", `pairs.csv:2: speed_b: -2 is negative`},
		{"x,r,v,", "x,r,", "pairs.csv:2: 6 values for 7 columns"},
		{"x,r,v,", "x,,v,", "pairs.csv:2: solo_profile_a: empty"},
		{"x,r,v,", "x,two,v,", "pairs.csv:2: solo_profile_a: two ran on 2 GPUs (profiles.csv:6 and 7); a pair is of two tasks on one"},
		{"x,r,v,", "\"x,r,v,", "pairs.csv:2: not CSV: "},
	} {
		broken := strings.Replace(pairsCSV, c.old, c.new, 1)
		if _, err := Read("pairs.csv", strings.NewReader(broken), ps); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\n\twant %s", err, c.want)
		}
	}
}

func TestWrongProfiles(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{profilesCSV, "", "p.csv:1: empty"},
		{"workload_id", "id", "p.csv:2: no column workload_id"},
		{"smact_mean", "smact", "p.csv:2: no column smact_mean"},
		{"drama_mean", "drama", "p.csv:2: no column drama_mean"},
		{"\nr,", "\nv,", "p.csv:4: workload_id: v a second time, after p.csv:3; only a task on several GPUs has several rows"},
		{"\nr,", "\n,", "p.csv:4: workload_id: empty"},
		{"0.8263", "1.8263", "p.csv:3: smact_mean: 1.8263 is more than 1"},
		{"0.4212", "x", `p.csv:3: smocc_mean: "x" is not a number`},
		{"0.4108", "nan", `p.csv:3: drama_mean: "nan" is not a number`},
		{"2668.29", "-1", "p.csv:3: train_loop_s: -1 is negative"},
		{"imagenet,128", "imagenet,many", `p.csv:3: batch_size: "many" is not a number`},
	} {
		broken := strings.Replace(profilesCSV, c.old, c.new, 1)
		if _, err := ReadProfiles("p.csv", strings.NewReader(broken)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v\n\twant %s", err, c.want)
		}
	}
	header, _, _ := strings.Cut(profilesCSV, "\nv,")
	if _, err := ReadProfiles("p.csv", strings.NewReader(header)); err == nil || err.Error() != "p.csv:2: no profiles after the header" {
		t.Error(err)
	}
	ps, err := ReadProfiles("p.csv", strings.NewReader("drama_mean,workload_id,smact_mean\n0.2,a,0.5\n"))
	if a := ps["a"]; err != nil || a.Load != (sim.Load{SMACT: 0.5, DRAMA: 0.2}) || !a.Measured || a.GPUs != 1 {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := ReadProfiles("p.csv", strings.NewReader(strings.Repeat("#", maxSize+1))); err == nil || err.Error() != "p.csv: larger than 16 MiB" {
		t.Error(err)
	}
}

func TestScore(t *testing.T) {
	ps := profiles(t)
	p := Pair{A: ps["v"].Task, B: ps["r"].Task}
	speeds := sim.Fitted.Speeds(p.Loads())
	p.SpeedA, p.SpeedB = speeds[0]-0.1, speeds[1]+0.2
	same := Pair{A: ps["r"].Task, B: ps["r"].Task, SpeedA: 1, SpeedB: 1}
	s := Score([]Pair{p, same}, sim.Fitted)
	if len(s.Speed) != 4 || len(s.Sum) != 2 || len(s.Light) != 1 || len(s.Heavy) != 1 {
		t.Fatalf("%+v", s)
	}
	if math.Abs(s.Light[0]+0.2) > 1e-9 || math.Abs(s.Heavy[0]-0.1) > 1e-9 || math.Abs(s.Sum[0]+0.1) > 1e-9 {
		t.Errorf("%+v", s)
	}
	p.A, p.B, p.SpeedA, p.SpeedB = p.B, p.A, p.SpeedB, p.SpeedA // the other way round
	if turned := Score([]Pair{p}, sim.Fitted); turned.Light[0] != s.Light[0] || turned.Heavy[0] != s.Heavy[0] {
		t.Errorf("%+v", turned)
	}
	e := Errors{-4, 1, 2, -3}
	if e.Median() != 2.5 || e.Mean() != 2.5 || e.Bias() != -1 || e.Quantile(1) != 4 || math.Abs(e.Quantile(0.9)-3.7) > 1e-9 {
		t.Errorf("median %v mean %v bias %v p90 %v", e.Median(), e.Mean(), e.Bias(), e.Quantile(0.9))
	}
	if none := (Errors{}); none.Median() != 0 || none.Mean() != 0 || none.Bias() != 0 {
		t.Error("nothing has errors")
	}
}

// TestStepsAreTheCatalogues checks that this package and the simulated tasks define a
// step in the same way.
func TestStepsAreTheCatalogues(t *testing.T) {
	for _, p := range workloads.All() {
		loop := p.Solo.TrainLoop
		if loop == 0 {
			loop = p.Solo.EndToEnd
		}
		got, want := Step(p.Model, p.Dataset, float64(p.BatchSize), float64(p.Epochs), loop.Seconds()), p.StepTime().Seconds()
		if math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: step of %g s, catalogue %g s", p.Name, got, want)
		}
	}
	for _, none := range []float64{Step("x", "unheard", 8, 1, 100), Step("x", "mnist", 0, 1, 100), Step("x", "mnist", 8, 1, 0)} {
		if none != 0 {
			t.Errorf("a step of %v s out of nothing", none)
		}
	}
}

var errorForm = regexp.MustCompile(`^x\.csv:\d+: .`)

// FuzzRead checks that any bytes give sensible figures or one line with a line number.
func FuzzRead(f *testing.F) {
	f.Add(profilesCSV, pairsCSV)
	f.Add("smact_mean,drama_mean,workload_id,gpus\n1,0,v,1e9\n0,1,r,\n", "solo_profile_a,solo_profile_b,speed_a,speed_b\nv,r,1,\"1\n\"\nr,r,0x1p-2,1_0\n")
	f.Fuzz(func(t *testing.T, profiles, pairs string) {
		complain := func(err error) {
			if !errorForm.MatchString(err.Error()) || strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
		}
		ps, err := ReadProfiles("x.csv", strings.NewReader(profiles))
		if err != nil {
			complain(err)
			return
		}
		for id, p := range ps {
			if l := p.Load; id == "" || p.GPUs < 1 || !(min(l.SMACT, l.SMOCC, l.DRAMA) >= 0 && max(l.SMACT, l.SMOCC, l.DRAMA) <= 1) || !(l.Step >= 0) {
				t.Errorf("%q: %+v", id, p)
			}
		}
		m, err := Read("x.csv", strings.NewReader(pairs), ps)
		if err != nil {
			complain(err)
			return
		}
		s := Score(m.Pairs, sim.Fitted)
		for _, e := range [][]float64{s.Speed, s.Sum, {s.Speed.Quantile(0.9), s.Sum.Bias()}} {
			for _, x := range e {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("an error of %v", x)
				}
			}
		}
	})
}
