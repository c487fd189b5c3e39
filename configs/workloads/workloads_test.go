package workloads

import (
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"carma/internal/units"
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*-bs[0-9]+(-[0-9]+e)?(-[0-9]+gpu)?$`)

func share(f float64) bool { return f >= 0 && f <= 1 }

func (a Activity) valid() bool {
	return share(a.SMACT) && share(a.SMACTP95) && share(a.SMOCC) && share(a.DRAMA) && a.SMOCC <= a.SMACT
}

// TestShippedFiles checks the range of every figure. A value outside is a mistake
// of the converter or of a hand.
func TestShippedFiles(t *testing.T) {
	names := map[string]string{}
	for _, p := range All() {
		for _, n := range append([]string{p.Name, p.Solo.ID}, p.Aliases...) {
			if other, ok := names[strings.ToLower(n)]; ok {
				t.Errorf("%s and %s are both called %s", other, p.Name, n)
			}
			names[strings.ToLower(n)] = p.Name
		}
		if !nameForm.MatchString(p.Name) {
			t.Errorf("%s: not a descriptive name", p.Name)
		}
		if p.Model == "" || p.Dataset == "" || p.BatchSize < 1 || p.Epochs < 1 || p.GPUs < 1 || p.GPUs > 2 {
			t.Errorf("%s: incomplete: %+v", p.Name, p)
		}
		if !slices.Contains([]string{"light", "medium/heavy", "heavy"}, p.WeightClass) {
			t.Errorf("%s: weight class %q", p.Name, p.WeightClass)
		}
		if !p.Activity.valid() || p.Activity.SMACT == 0 {
			t.Errorf("%s: activity %+v", p.Name, p.Activity)
		}
		for _, g := range p.perGPU {
			if !g.valid() || g.PeakMiB < 1 || len(p.perGPU) != p.GPUs || g.PeakMiB > p.perGPU[0].PeakMiB {
				t.Errorf("%s: per GPU %+v", p.Name, p.perGPU)
			}
		}
		for version, c := range p.campaigns {
			if version != "v1" && version != "v2" || c.Source == "" {
				t.Errorf("%s: campaign %s %+v", p.Name, version, c)
			}
			if c.RunTime < time.Minute || c.RunTime > 5*time.Hour || c.Memory < 500*units.MiB || c.Memory > 40*units.GiB {
				t.Errorf("%s: campaign %s %+v", p.Name, version, c)
			}
		}
		if _, ok := p.campaigns["v2"]; !ok {
			t.Errorf("%s: no campaign v2", p.Name)
		}
		for _, e := range []units.Bytes{p.Estimates.Horus, p.Estimates.FakeTensor, p.Estimates.GPUMemNet} {
			if e < 0 || e >= 40000*units.MiB {
				t.Errorf("%s: estimates %+v; 40000 stands for none and is left out", p.Name, p.Estimates)
			}
		}
		if p.Solo.ID == "" || p.Solo.EndToEnd < p.Solo.TrainLoop || p.Solo.Peak < 500*units.MiB {
			t.Errorf("%s: solo %+v", p.Name, p.Solo)
		}
	}
	if n := len(All()); n != 53 {
		t.Errorf("%d profiles, want 50 of the original and 3 known from solo runs only", n)
	}
}

// originals are the 52 tasks of the original.
const originals = `BERT_base BERT_large Inception Inception2 Inception3 UNet Xception Xception2 Xception3 dlrm
efficientNet efficientNet2 efficientNet3 efficientNet_cifar100_20e_1 efficientNet_cifar100_20e_2
efficientNet_cifar100_20e_3 efficientNet_cifar100_50e_1 efficientNet_cifar100_50e_2 efficientNet_cifar100_50e_3
gpt2_large_2 gpt2_xl maskrcnn mnist_train mobilenet mobilenet2 mobilenet3 mobilenet_cifar100_20e_1
mobilenet_cifar100_20e_2 mobilenet_cifar100_20e_3 mobilenet_cifar100_50e_1 mobilenet_cifar100_50e_2
mobilenet_cifar100_50e_3 resnet resnet2 resnet3 resnet18_cifar100_20e_1 resnet18_cifar100_20e_2
resnet18_cifar100_20e_3 resnet18_cifar100_50e_1 resnet18_cifar100_50e_2 resnet18_cifar100_50e_3
resnet34_cifar100_20e_1 resnet34_cifar100_20e_2 resnet34_cifar100_20e_3 resnet34_cifar100_50e_1
resnet34_cifar100_50e_2 resnet34_cifar100_50e_3 vgg vgg2 vgg3 xlnet_base_cased_2 xlnet_large_cased_2`

func TestEveryOriginalTaskIsFound(t *testing.T) {
	tasks := strings.Fields(originals)
	if len(tasks) != 52 {
		t.Fatalf("%d tasks", len(tasks))
	}
	for _, task := range tasks {
		p, err := Find(strings.ToUpper(task))
		if err != nil {
			t.Error(err)
		} else if !slices.Contains(p.Aliases, task) {
			t.Errorf("%s found %s, which has other aliases: %q", task, p.Name, p.Aliases)
		}
	}
}

// TestFigures compares some values with their sources.
func TestFigures(t *testing.T) {
	for _, c := range []struct {
		name, campaign string
		minutes        float64
		memory         units.Bytes
	}{
		{"resnet2", "v1", 35.5, 8536},
		{"resnet50-imagenet-bs64", "v2", 32.52, 7106},
		{"resnet50_imagenet_bs64_1gpu", "", 32.52, 7106},
		{"vgg3", "v1", 42.41, 24408},
		{"mnist_train", "v2", 2.34, 1776},
		{"gpt2_xl", "v1", 30.68, 40182},
		{"gpt2_xl", "v2", 240.81, 40182},
		{"maskrcnn-coco-bs8", "v2", 109.7, 28606},
		{"resnet18_cifar100_50e_3", "v1", 3.27, 2006},
	} {
		p, err := Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Campaign(c.campaign)
		if err != nil || math.Abs(got.RunTime.Minutes()-c.minutes) > 1e-4 || got.Memory != c.memory*units.MiB {
			t.Errorf("%s %s: %v %v (%v), want %v min %d MiB", c.name, c.campaign, got.RunTime, got.Memory, err, c.minutes, c.memory)
		}
	}
	p, _ := Find("resnet2")
	if p.Estimates != (Estimates{14910 * units.MiB, 5337 * units.MiB, 16000 * units.MiB}) {
		t.Errorf("estimates %+v", p.Estimates)
	}
	if p, _ := Find("gpt2_large_2"); p.Estimates != (Estimates{}) {
		t.Errorf("40000 is no estimate: %+v", p.Estimates)
	}
}

func TestCampaignNotMeasured(t *testing.T) {
	unet, err := Find("unet")
	if err != nil {
		t.Fatal(err)
	}
	for campaign, want := range map[string]string{
		"v1": "unet-voc-bs8-90e was not measured in campaign v1; v2",
		"v9": `unknown campaign "v9"; v1 or v2`,
	} {
		if _, err := unet.Campaign(campaign); err == nil || err.Error() != want {
			t.Errorf("%s: %v", campaign, err)
		}
		if _, err := unet.Peaks(campaign); err == nil {
			t.Errorf("%s: peaks of a campaign that is not there", campaign)
		}
	}
}

func TestUnequalGPUs(t *testing.T) {
	p, err := Find("gpt2_large_2")
	if err != nil {
		t.Fatal(err)
	}
	peaks, err := p.Peaks("v2")
	if err != nil || len(peaks) != 2 || peaks[0] != 28356*units.MiB {
		t.Fatalf("peaks %v (%v)", peaks, err)
	}
	if got := peaks[1] / units.MiB; got != 28356*16458/28330 {
		t.Errorf("second GPU %d MiB", got)
	}
	if a := p.Activities(); a[0] != p.Activity || a[1].SMACT != 0.7969 {
		t.Errorf("activities %+v", a)
	}
	one, _ := Find("vgg")
	if peaks, err := one.Peaks(""); err != nil || len(peaks) != 1 || peaks[0] != 6684*units.MiB {
		t.Errorf("peaks %v (%v)", peaks, err)
	}
	large, _ := Find("xlnet_large_cased_2") // only one of its two GPUs was profiled
	if a := large.Activities(); len(a) != 2 || a[0] != a[1] {
		t.Errorf("activities %+v", a)
	}
}

func TestUnknownNameIsAnswered(t *testing.T) {
	_, err := Find("resnet50-imagenet-bs65")
	if err == nil || !strings.HasPrefix(err.Error(), `unknown workload "resnet50-imagenet-bs65"; nearest: resnet50-imagenet-bs64, `) {
		t.Errorf("%v", err)
	}
	if _, err := Find(""); err == nil {
		t.Error("an empty name was found")
	}
}

func TestSteps(t *testing.T) {
	for name, want := range map[string]struct {
		steps int
		time  time.Duration
	}{
		"vgg3":                    {10010, 267 * time.Millisecond},
		"resnet18_cifar100_20e_3": {391, 16 * time.Millisecond},
		"UNet":                    {183, 114 * time.Millisecond},
	} {
		p, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.StepTime().Round(time.Millisecond); p.StepsPerEpoch() != want.steps || got != want.time {
			t.Errorf("%s: %d steps of %v", name, p.StepsPerEpoch(), got)
		}
	}
	for _, p := range All() {
		if p.StepsPerEpoch() < 2 || p.StepTime() < time.Millisecond || p.StepTime() > 5*time.Second {
			t.Errorf("%s: %d steps of %v", p.Name, p.StepsPerEpoch(), p.StepTime())
		}
	}
}

func TestModels(t *testing.T) {
	for _, c := range []struct {
		spelling, model string
		profiles        int
	}{
		{"resnet50", "resnet50", 3}, {"ResNet-50", "resnet50", 3}, {"bert-base", "bert_base", 1},
		{"bert_base", "bert_base", 1}, {"BERT base uncased", "bert_base", 1}, {"Mask R-CNN", "mask_rcnn_resnet50_fpn", 1},
		{"inceptionv3", "inception_v3", 3}, {"VGG16", "vgg16", 3}, {"efficientnet_b0", "efficientnet_b0", 9},
		{"llama3-8layer", "llama3_width_8layer", 1}, {"xlnet-large-cased", "xlnet_large_cased", 1},
	} {
		ps := ByModel(c.spelling)
		if len(ps) != c.profiles || ps[0].Model != c.model {
			t.Errorf("%s: %d profiles", c.spelling, len(ps))
		}
	}
	if got := ByModel("alexnet"); got != nil {
		t.Errorf("alexnet: %v", got)
	}
	models := modelNames()
	if len(models) != 20 || !slices.IsSorted(models) {
		t.Errorf("models %q", models)
	}
	total := 0
	for _, m := range models {
		total += len(ByModel(m))
	}
	if total != len(All()) {
		t.Errorf("the models have %d profiles, the catalogue %d", total, len(All()))
	}
}

func TestAllIsACopy(t *testing.T) {
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted")
	}
	all[0] = Profile{}
	if All()[0].Name == "" {
		t.Error("a caller can change the catalogue")
	}
}

func TestBrokenFiles(t *testing.T) {
	for name, content := range map[string]string{
		"unknown key": "schema: carma/workload/v1\nmodel: x\nprofils: []\n",
		"schema":      "schema: carma/workload/v2\nmodel: x\n",
		"not YAML":    "{",
	} {
		if _, _, err := load(fstest.MapFS{"x.yaml": {Data: []byte(content)}}); err == nil || !strings.HasPrefix(err.Error(), "x.yaml: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, _ := fs.Glob(files, "*.yaml"); len(names) != len(modelNames()) {
		t.Errorf("%d files for %d models", len(names), len(modelNames()))
	}
}

// modelNames returns the models that have profiles, sorted.
func modelNames() []string {
	var models []string
	for _, p := range All() {
		models = append(models, p.Model)
	}
	slices.Sort(models)
	return slices.Compact(models)
}
