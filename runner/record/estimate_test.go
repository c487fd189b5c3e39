package record

import (
	"carma/internal/units"
	"carma/mapper/model"
	"strings"
	"testing"
)

// TestWhereAnEstimateComesFrom: if the peak of earlier runs is allocated, the detail says so
// and precedes the estimator's sentence.
func TestWhereAnEstimateComesFrom(t *testing.T) {
	const asked = "workload resnet50: 6.9 GiB measured, 7.0 GiB booked"
	const unknown = "nothing is known about its memory; --mem or --est-model lets it share at once"
	for alone, want := range map[bool]string{false: unknown, true: "nothing is known about its memory; it asked for its GPUs alone"} {
		if got := EstimateDetail(model.Estimate{WholeGPU: true}, unknown, alone); got != want {
			t.Errorf("exclusive %v: %q, want %q", alone, got, want)
		}
	}
	for _, c := range []struct {
		e    model.Estimate
		want string
	}{
		{model.Estimate{Memory: 7 * units.GiB, Method: "catalogue"}, asked},
		{model.Estimate{Memory: 9 * units.GiB, Method: model.FromHistory}, "9.0 GiB booked, a little above what earlier runs"},
		{model.Estimate{WholeGPU: true, Method: model.FromHistory}, "whole GPUs; when it was submitted: " + asked},
	} {
		if got := EstimateDetail(c.e, asked, false); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}
