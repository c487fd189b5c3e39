package evaluate

import (
	"os"
	"slices"
	"testing"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
)

// Measurements on an H100 are within the bounds of its environment. They exceed the
// default environment's bounds: a process on an H100 has 217 to 237 MiB more before its
// first tensor.
func TestMeasuredOnH100(t *testing.T) {
	cases, skipped := measuredOn(t, "h100-2026-11-22")
	if len(cases) != 59 || skipped != 1 { // one measurement is there twice
		t.Fatalf("%d trainings, %d skipped", len(cases), skipped)
	}
	here := scored(t, cases)
	if here.Mean > 0.05 || here.BoundUnder > 0.05 {
		t.Errorf("%s: mean error %.3f, %.3f of the bounds do not hold; want at most 0.05", H100Autumn26, here.Mean, here.BoundUnder)
	}
	elsewhere := slices.Clone(cases)
	for i := range elsewhere {
		elsewhere[i].Environment = environment.Default
	}
	if there := scored(t, elsewhere); there.Mean < 2*here.Mean || there.BoundUnder < 0.3 {
		t.Errorf("%s: mean error %.3f, %.3f of the bounds do not hold: no worse, so what is %s for?", environment.Default, there.Mean, there.BoundUnder, H100Autumn26)
	}
}

// TestMeasuredOthers checks trainings that were not used to fit a coefficient: in mixed and
// half precision, with other optimizers, and of other networks. Their tables contain the
// settings.
func TestMeasuredOthers(t *testing.T) {
	cases, _ := measuredOn(t, "h100-2026-11-26")
	precisions, optimizers, groups := map[models.Precision]int{}, map[models.Optimizer]int{}, map[string]bool{}
	for _, c := range cases {
		precisions[c.Config.Train.Precision]++
		optimizers[c.Config.Train.Optimizer]++
		groups[c.Group] = true
	}
	if len(cases) != 31 || precisions[models.AMP] != 15 || precisions[models.BF16] != 4 || optimizers[models.SGDMomentum] != 2 || optimizers[models.AdamW] != 2 {
		t.Errorf("%d trainings: %v, %v", len(cases), precisions, optimizers)
	}
	if !groups["resnet50/imagenet|amp"] || !groups["resnet50/imagenet|bf16"] {
		t.Errorf("a training is grouped with the same in another precision: %v", groups)
	}
	if s := scored(t, cases); s.Mean > 0.07 || s.BoundUnder > 0.15 {
		t.Errorf("mean error %.3f, %.3f of the bounds do not hold; want at most 0.07 and 0.15", s.Mean, s.BoundUnder)
	}
}

func measuredOn(t *testing.T, folder string) (cases []Case, skipped int) {
	t.Helper()
	file, err := os.Open("../../docs/hardware/" + folder + "/estimates.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if cases, skipped, err = Read(file, zoo.Build); err != nil {
		t.Fatal(err)
	}
	return cases, skipped
}

func scored(t *testing.T, cases []Case) Score {
	t.Helper()
	scores, _, err := Run(cases, []methods.Method{&methods.Carma{}}, "", 0.95)
	if err != nil {
		t.Fatal(err)
	}
	return scores[0]
}
