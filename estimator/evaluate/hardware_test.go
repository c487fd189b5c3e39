package evaluate

import (
	"os"
	"slices"
	"testing"

	"carma/estimator/environment"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
)

// Measurements on an H100 are within the bounds of its environment. They exceed
// those of the default environment: a process on an H100 has 217 to 237 MiB more
// before its first tensor.
func TestMeasuredOnH100(t *testing.T) {
	file, err := os.Open("../../docs/hardware/h100-2026-11-22/estimates.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	cases, skipped, err := Read(file, zoo.Build)
	if err != nil || len(cases) != 59 || skipped != 1 { // one measurement is there twice
		t.Fatalf("%d trainings, %d skipped: %v", len(cases), skipped, err)
	}
	score := func(cases []Case) Score {
		scores, _, err := Run(cases, []methods.Method{&methods.Carma{}}, "", 0.95)
		if err != nil {
			t.Fatal(err)
		}
		return scores[0]
	}
	here := score(cases)
	if here.Mean > 0.05 || here.BoundUnder > 0.05 {
		t.Errorf("%s: mean error %.3f, %.3f of the bounds do not hold; want at most 0.05", H100Autumn26, here.Mean, here.BoundUnder)
	}
	elsewhere := slices.Clone(cases)
	for i := range elsewhere {
		elsewhere[i].Environment = environment.Default
	}
	if there := score(elsewhere); there.Mean < 2*here.Mean || there.BoundUnder < 0.3 {
		t.Errorf("%s: mean error %.3f, %.3f of the bounds do not hold: no worse, so what is %s for?", environment.Default, there.Mean, there.BoundUnder, H100Autumn26)
	}
}
