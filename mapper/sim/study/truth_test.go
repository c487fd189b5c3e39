package study

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"carma/configs/traces"
	"carma/mapper/model"
	"carma/mapper/sim"
)

func TestParseTruth(t *testing.T) {
	for text, want := range map[string]sim.Truth{
		"model":                                  {},
		"pair=0.12":                              {Pair: 0.12},
		"perturbed":                              {Pair: 0.12, Time: 0.54, Activity: 0.2},
		"seed=7, perturbed,silent=1":             {Seed: 7, Pair: 0.12, Time: 0.54, Activity: 0.2, Silent: 1},
		"growth=0.3,preallocate=1e-1":            {Growth: 0.3, Preallocate: 0.1},
		"memory=0.3,seed=2":                      {Seed: 2, Memory: 0.3},
		"model,seed=18446744073709551615,pair=0": {Seed: 1<<64 - 1},
	} {
		got, err := ParseTruth(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		again, err := ParseTruth(got.String())
		if got.String() == "model" {
			got.Seed = 0
		}
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s reads back as %+v, %v", got, again, err)
		}
	}
}

func TestWrongTruth(t *testing.T) {
	folder := t.TempDir()
	unknown, two := filepath.Join(folder, "unknown.csv"), filepath.Join(folder, "two.csv")
	const head = "solo_profile_a,solo_profile_b,speed_a,speed_b\n"
	for path, text := range map[string]string{unknown: head + "x,y,1,1\n", two: head + "gpt2_large_wiki_bs8_2gpu,unet_voc_1gpu,1,1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"":                    "a part is empty; write for example pair=0.12,seed=2, or perturbed",
		"pair=0.1,":           "a part is empty",
		"pertubed":            `unknown word "pertubed"; nearest: perturbed`,
		"pair":                "pair has no value; write for example pair=0.2",
		"pear=0.2":            `unknown key "pear"; nearest: pair`,
		"Pair=0.2":            `unknown key "Pair"; nearest: pair`,
		"pair=much":           `pair: "much" is not a number; write for example pair=0.2`,
		"time=":               `time: "" is not a number`,
		"pair=3":              "pair is 3; a standard deviation of a logarithm is between 0 and 2",
		"activity=NaN":        "activity is NaN; ",
		"growth=1.5":          "growth is 1.5; a share is between 0 and 1",
		"silent=-1":           "silent is -1; a share is between 0 and 1",
		"seed=-1":             `seed: "-1" is not a whole number from 0 on`,
		"pair=0.1,pair=0.1":   "pair is set twice",
		"perturbed,time=0.1":  "time is set twice",
		"perturbed,perturbed": "pair is set twice",
		"perturbed=1":         "perturbed takes no value; write perturbed",
		"pairs=":              "pairs has no value; write for example pairs=measured.csv",
		"pairs=/nowhere":      "pairs: /nowhere: no such file",
		"pairs=" + folder:     "pairs: " + folder + ": a folder, not a file",
		"pairs=" + unknown:    "pairs: " + unknown + ": none of its pairs can be used; line 2: unknown profile x",
		"pairs=" + two:        "pairs: " + two + ":2: solo_profile_a: gpt2_large_wiki_bs8_2gpu ran on 2 GPUs",
	} {
		_, err := ParseTruth(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestMeasuredTruth checks that speeds of measured pairs are found by solo profile or
// workload, in either order, and are the mean of several measurements.
func TestMeasuredTruth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pairs.csv")
	err := os.WriteFile(path, []byte(`solo_profile_a,solo_profile_b,overlap_speed_a,overlap_speed_b
vgg16_imagenet_bs32_1gpu,resnet50-imagenet-bs64,0.9,0.5
resnet50_imagenet_bs64_1gpu,vgg16_imagenet_bs32_1gpu,0.7,0.8
resnet50_imagenet_bs64_1gpu,resnet50_imagenet_bs64_1gpu,0.6,0.7
resnet50_imagenet_bs64_1gpu,unet_voc_1gpu,0,0
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := ParseTruth("pairs=" + path)
	if err != nil {
		t.Fatal(err)
	}
	const vgg, resnet, unet = "vgg16-imagenet-bs32", "resnet50-imagenet-bs64", "unet-voc-bs8-90e"
	for pair, want := range map[[2]string]float64{{vgg, resnet}: 0.85, {resnet, vgg}: 0.6, {resnet, resnet}: 0.65} {
		if got := truth.Speeds[pair]; got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s goes at %v, want %v", pair, got, want)
		}
	}
	if _, ok := truth.Speeds[[2]string{resnet, unet}]; ok {
		t.Error("a pair that did not fit into memory has a speed")
	}
	if got := truth.String(); got != "pairs="+path {
		t.Error(got)
	}
}

// told returns the tasks as one row's scheduler sees them.
func told(t *testing.T, s *Study, estimator string) []sim.Task {
	t.Helper()
	trace, err := traces.Read("smoke-5")
	if err != nil {
		t.Fatal(err)
	}
	p := s.player(trace)
	row, err := Rules{Policies: "carma", Estimator: estimator}.Rows()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.play(row[0]); err != nil {
		t.Fatal(err)
	}
	for _, tasks := range p.tasks {
		return tasks
	}
	return nil
}

func TestKnow(t *testing.T) {
	server, err := Server("sim:dgx-station-a100", 2)
	if err != nil {
		t.Fatal(err)
	}
	study := func(c Conditions) *Study {
		s := &Study{Server: server}
		s.Under(c)
		return s
	}
	whole := model.Estimate{WholeGPU: true}
	for _, c := range []struct {
		know            Know
		estimator       string
		memory, profile bool
	}{
		{"", "catalogue", true, true}, {KnowAll, "oracle", true, true}, {KnowMemory, "oracle", true, false},
		{KnowNothing, "oracle", false, false}, {KnowNothing, "catalogue", false, false},
	} {
		task := told(t, study(Conditions{Know: c.know}), c.estimator)[0]
		if got := task.Estimate.Memory > 0; got != c.memory || !c.memory && !reflect.DeepEqual(task.Estimate, whole) {
			t.Errorf("know %q, %s: estimate %+v", c.know, c.estimator, task.Estimate)
		}
		if got := len(task.Expected.Loads) > 0 && task.Expected.RunTime > 0 && task.Family != ""; got != c.profile {
			t.Errorf("know %q: expected %+v, family %q", c.know, task.Expected, task.Family)
		}
	}
	if e := told(t, study(Conditions{Know: KnowNothing}), "none")[0].Estimate; e.WholeGPU {
		t.Errorf("without estimates recovery is all there is, but the task gets %+v", e)
	}
	same, distinct := told(t, study(Conditions{}), "oracle"), told(t, study(Conditions{Distinct: true}), "oracle")
	if same[0].Kind != same[1].Kind || distinct[0].Kind == distinct[1].Kind {
		t.Errorf("kinds %s and %s; without repeats %s and %s", same[0].Kind, same[1].Kind, distinct[0].Kind, distinct[1].Kind)
	}
}

// TestTruthOfTraces checks that each trace has its own draws, which do not depend on the
// other traces.
func TestTruthOfTraces(t *testing.T) {
	server, err := Server("sim:dgx-station-a100", 0)
	if err != nil {
		t.Fatal(err)
	}
	makespans := func(names ...string) (list []float64) {
		s := &Study{Server: server, Rows: []Row{mustPreset(ReferencePreset)}}
		s.Truth.Time = 0.5
		for _, name := range names {
			trace, err := traces.Read("smoke-5")
			if err != nil {
				t.Fatal(err)
			}
			trace.Name = name
			s.Traces = append(s.Traces, trace)
		}
		all, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			list = append(list, all[i].Outcomes[0].Result.Metrics.Makespan.Seconds())
		}
		return list
	}
	two, one := makespans("a", "b"), makespans("b")
	if two[0] == two[1] || two[1] != one[0] {
		t.Errorf("makespans %v, the second by itself %v", two, one)
	}
}

func TestConditionsInWords(t *testing.T) {
	if words := (&Study{}).Conditions().Words(); len(words) > 0 {
		t.Error(words)
	}
	c := Conditions{KnowNothing, true, sim.Truth{Pair: 0.1, Seed: 3}, sim.TimeSlicing, true, sim.Suspending{}, 0, sim.Drain{GPU: 1, From: 90 * time.Minute, Until: 2 * time.Hour, Move: true}}
	want := "nothing is known of the tasks; no task repeats another; tasks share a GPU by time-slicing, not mps; GPUs tell their activity coarsely; truth pair=0.1,seed=3; a GPU is drained, 1@1h30m-2h,move"
	if got := strings.Join(c.Words(), "; "); got != want {
		t.Error(got)
	}
}
