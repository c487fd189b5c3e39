package evaluate

import (
	"errors"
	"math"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
)

// The rows are invented; the columns are the same as in the public files.
const (
	cnnFile = `input_channels,num_classes,architecture,batch_size,input_size,activation_module,max_gpu_mem_mib,status,layers
3,10,uniform,4,8,ReLU,1800,SUCCESSFUL,conv2d:1024:448;relu:1024:0;avgpool:16:0;linear:10:170
3,10,uniform,4,8,ReLU,39000,OOM_CRASH,conv2d:1024:448;relu:1024:0;linear:10:10250
3,10,residual,4,8,ReLU,1800,SUCCESSFUL,conv2d:1024:448
3,10,uniform,4,8,ReLU,0,SUCCESSFUL,conv2d:1024:448
3,10,uniform,4,8,ReLU,1800,SUCCESSFUL,
`
	mlpFile = `input_size,architecture,batch_size,activation_module,max_gpu_mem_mib,layers
100,pyramid,32,GELU,1450,linear:50:5050;gelu:50:0;dropout:50:0;linear:10:510
`
	timmFile = `model,batch_size,actual_mib,faketensor_peak_mib,oom_suspect
nobody_knows,8,6000,3000.5,0
nobody_knows,16,9000,6000,1
`
	realFile = `model,dataset,batch_size,gpus,actual_mib,horus_mib,faketensor_mib,gpumemnet_mib,measured
resnet50,imagenet,32,1,4000,8000,2600,16000,2025-09
resnet50,imagenet,32,1,4000.0,8000,2600,16000,2025-09
Xception,imagenet,32,1,6000,,,,2024-10
resnet18_cifar100,cifar100,32,2,800,,,,2025-09
unheard_of,imagenet,32,1,4000,,,,2025-09
vgg16,places365,32,1,6000,,,,2025-09
`
)

func read(t *testing.T, text string) ([]Case, int) {
	t.Helper()
	cases, skipped, err := Read(strings.NewReader(text), zoo.Build)
	if err != nil {
		t.Fatal(err)
	}
	return cases, skipped
}

func TestReadsEveryFormat(t *testing.T) {
	cases, skipped := read(t, cnnFile)
	if len(cases) != 2 || skipped != 3 || !cases[1].Truncated || cases[0].Truncated || cases[0].Set != CNN || cases[0].Row != 2 {
		t.Errorf("%d cases, %d skipped: %+v", len(cases), skipped, cases)
	}
	if c := cases[0].Config; c.Params() != 448+170 || c.Layers[0].Kernel[0] != 3 || c.Train.Batch != 4 || c.Validate() != nil {
		t.Errorf("%+v (%v)", c, c.Validate())
	}
	cases, _ = read(t, mlpFile)
	if len(cases) != 1 || cases[0].Set != MLP || cases[0].Measured != 1450<<20 || cases[0].Config.Params() != 5560 {
		t.Errorf("%+v", cases)
	}
	cases, _ = read(t, timmFile)
	if len(cases) != 2 || cases[0].Set != Timm || cases[0].Config != nil || cases[0].FakeTensor != int64(3000.5*(1<<20)) || !cases[1].Truncated {
		t.Errorf("%+v", cases)
	}
}

// TestRealModels: a repeated measurement counts once, the jobs' own settings are
// applied, and several GPUs share a batch.
func TestRealModels(t *testing.T) {
	cases, skipped := read(t, realFile)
	if len(cases) != 4 || skipped != 2 || cases[3].Config.Inputs[0].Shape[1] != 224 {
		t.Fatalf("%d cases, %d skipped", len(cases), skipped)
	}
	if c := cases[0]; c.Row != 3 || c.Environment != A100Autumn25 || c.Published["gpumemnet"] != 16000<<20 {
		t.Errorf("%+v", c)
	}
	if c := cases[1]; c.Environment != A100Autumn24 || c.Config.Inputs[0].Shape[1] != 224 {
		t.Errorf("%+v: Xception was measured at 224 pixels", c.Config.Inputs)
	}
	if c := cases[2].Config; c.Train.GPUs != 2 || c.Train.Parallel != models.DataParallel || c.Inputs[0].Shape[1] != 32 {
		t.Errorf("%+v", c.Train)
	}
}

func TestBadFilesAreRefusedByLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "line 1: no header"},
		{"a,b\n1,2\n", "line 1: columns a,b are those of no known format"},
		{strings.Replace(cnnFile, "conv2d:1024:448;relu", "conv2d:x:448;relu", 1), "line 2: layer 1: outputs \"x\""},
		{strings.Replace(cnnFile, "relu:1024:0;avg", "rele:1024:0;avg", 1), "line 2: layer 2: unknown type \"rele\""},
		{strings.Replace(mlpFile, ",32,", ",0,", 1), "line 2: batch_size \"0\" is not a number from 1"},
		{strings.Replace(timmFile, "6000,3000.5", "NaN,3000.5", 1), "line 2: actual_mib \"NaN\" is not a number of MiB"},
		{strings.Replace(realFile, "32,1,4000,", "32,none,4000,", 1), "line 2: gpus \"none\""},
		{mlpFile + "1,2\n", "wrong number of fields"},
	} {
		if _, _, err := Read(strings.NewReader(c.text), zoo.Build); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// known is a method with fixed results: point and bound by batch size. It returns an error for
// an unknown size.
type known map[int][2]int64

func (known) Name() string   { return "known" }
func (known) Source() string { return "" }
func (k known) Estimate(s methods.Subject) (methods.Answer, error) {
	a, ok := k[s.Config.Train.Batch]
	if !ok {
		return methods.Answer{}, methods.ErrNotApplicable
	}
	if a[0] == 0 {
		return methods.Answer{}, errors.New("broken")
	}
	return methods.Answer{Point: a[0], Upper: a[1]}, nil
}

func TestScoresByHand(t *testing.T) {
	var cases []Case
	for batch := 1; batch <= 6; batch++ {
		cases = append(cases, Case{Measured: 1000, Truncated: batch == 6, Config: &models.Config{Train: models.Train{Batch: batch}}})
	}
	scores, outcomes, err := Run(cases, []methods.Method{known{1: {900, 1100}, 2: {1100, 1300}, 3: {800, 950}, 4: {0, 0}, 6: {1, 1}}}, "", 0.95)
	if err != nil {
		t.Fatal(err)
	}
	want := Score{
		Method: "known", Rows: 3, Of: 5, Mean: 0.4 / 3, Median: 0.1, Under: 2. / 3, BoundUnder: 1. / 3, Overhead: 0.35 / 3,
		Failed: 1, First: "broken",
	}
	got := scores[0]
	for _, pair := range [][2]float64{{got.Mean, want.Mean}, {got.Median, want.Median}, {got.Overhead, want.Overhead}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	got.Mean, got.Median, got.Overhead = want.Mean, want.Median, want.Overhead
	if got != want || len(outcomes) != 3 || math.Abs(outcomes[2].Error+0.2) > 1e-9 {
		t.Errorf("%+v, want %+v; outcomes %+v", got, want, outcomes)
	}
}

// TestOneOtherBatchSizeSeen: the next smaller run corrects, a truncated run does
// not, and a training with one batch size is left out.
func TestOneOtherBatchSizeSeen(t *testing.T) {
	at := func(group string, batch int, measured int64, truncated bool) Case {
		return Case{Group: group, Batch: batch, Measured: measured, Truncated: truncated, Config: &models.Config{Train: models.Train{Batch: batch}}}
	}
	cases := []Case{
		at("a", 8, 2000, false), at("a", 16, 4400, false), at("a", 32, 9000, true),
		at("b", 8, 1000, false),
	}
	m := known{8: {1000, 1500}, 16: {2000, 3000}, 32: {1, 1}}
	got, err := RunSeen(cases, m, "", 0.95)
	if err != nil {
		t.Fatal(err)
	}
	// Batch size 8, corrected by the run at 16: estimate 1000 x 4400/2000 = 2200, measured 2000.
	// Batch size 16, corrected by the run at 8: estimate 2000 x 2000/1000 = 4000, measured 4400.
	if got.Rows != 2 || got.Of != 2 || math.Abs(got.Mean-(0.1+400./4400)/2) > 1e-6 || got.Under != 0.5 {
		t.Errorf("%+v", got)
	}
}

// TestOtherBatchSizesAlone: the next smaller runs count, truncated ones do not.
func TestOtherBatchSizesAlone(t *testing.T) {
	at := func(group string, batch int, measured int64, truncated bool) Case {
		return Case{Group: group, Batch: batch, Measured: measured, Truncated: truncated}
	}
	cases := []Case{at("a", 8, 1000, false), at("a", 16, 1800, false), at("a", 32, 3600, false), at("a", 64, 9000, true), at("b", 8, 1000, false)}
	// Batch size 32 from the line through 8 and 16: estimate 3400, measured 3600. Batch size 16
	// from 8 and 32: 1867, measured 1800. Batch size 8 from 16 and 32: 900, measured 1000.
	two := RunAlone(cases, 2)
	if want := (200./3600 + 66./1800 + 0.1) / 3; two.Rows != 3 || two.Of != 3 || math.Abs(two.Mean-want) > 1e-3 {
		t.Errorf("two: %+v, want a mean of %.4f", two, want)
	}
	one := RunAlone(cases, 1)
	if one.Rows != 3 || one.BoundUnder != 0 || one.Mean < two.Mean {
		t.Errorf("one: %+v", one)
	}
}

// TestEnvironments: each environment has its own scores, truncated cases count
// nowhere, and carma's own method is also scored with other runs seen.
func TestEnvironments(t *testing.T) {
	at := func(environment, group string, batch int, measured int64, truncated bool) Case {
		return Case{Environment: environment, Group: group, Batch: batch, Measured: measured, Truncated: truncated, Config: &models.Config{Train: models.Train{Batch: batch}}}
	}
	cases := []Case{
		at("a100-2024", "a", 8, 2000, false), at("a100-2024", "a", 16, 4400, false), at("a100-2024", "a", 32, 9000, true),
		at("", "b", 8, 1000, false),
	}
	for name, seen := range map[string]int{"carma": 3, "other": 0} {
		m := named{known{8: {1000, 1500}, 16: {2000, 3000}, 32: {1, 1}}, name}
		got, outcomes, err := Environments(cases, []methods.Method{m}, environment.Default, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || len(outcomes) != 3 || got[0].Environment != "" || got[0].Trainings != 1 || got[1].Environment != "a100-2024" || got[1].Trainings != 2 {
			t.Fatalf("%+v, outcomes %+v", got, outcomes)
		}
		if len(got[0].Seen) != 0 || len(got[1].Seen) != seen {
			t.Errorf("%s: seen %+v and %+v", name, got[0].Seen, got[1].Seen)
		}
	}
}

// TestHistory checks that an error of 20 % in all runs is learned from runs of other models,
// better from runs of the same model, and not from runs of another family.
func TestHistory(t *testing.T) {
	var cases []Case
	at := func(environment, group string, family models.Family, batch int, measured int64) {
		cases = append(cases, Case{Environment: environment, Group: group, Batch: batch, Measured: measured, Config: &models.Config{Family: family, Train: models.Train{Batch: batch}}})
	}
	for _, group := range []string{"a", "b", "c", "d"} {
		at("a100-2024", group, models.Conv, 8, 1200)
		at("a100-2024", group, models.Conv, 16, 2400)
	}
	m := known{8: {1000, 1150}, 16: {2000, 2300}}
	others, err := RunHistory(cases, m, "", 0.95, false)
	if err != nil || others.Rows != 8 || others.Mean > 0.1 || others.BoundUnder != 0 {
		t.Errorf("other models: %+v, %v", others, err)
	}
	own, err := RunHistory(cases, m, "", 0.95, true)
	if err != nil || own.Rows != 8 || own.Mean >= others.Mean || own.BoundUnder != 0 {
		t.Errorf("its own too: %+v, %v", own, err)
	}
	cases = cases[:1]
	at("a100-2024", "a", models.Transformer, 8, 1200)
	if s, err := RunHistory(cases, m, "", 0.95, true); err != nil || s.Rows != 0 {
		t.Errorf("another family: %+v, %v", s, err)
	}
}

// named is a method under another name.
type named struct {
	known
	name string
}

func (n named) Name() string { return n.name }

func FuzzRead(f *testing.F) {
	for _, text := range []string{cnnFile, mlpFile, timmFile, realFile} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cases, _, err := Read(strings.NewReader(text), func(string, models.Overrides) (*models.Config, error) { return nil, errors.New("none") })
		if err != nil {
			return
		}
		for _, c := range cases {
			if c.Measured <= 0 || c.FakeTensor < 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}
