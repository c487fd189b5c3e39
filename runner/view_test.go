package runner

import (
	"strings"
	"testing"

	"carma/mapper/units"

	"carma/mapper"
)

// TestWhereAnEstimateComesFrom: what earlier runs used is said once it is
// booked, not what the estimator had said before.
func TestWhereAnEstimateComesFrom(t *testing.T) {
	const asked = "workload resnet50: 6.9 GiB measured, 7.0 GiB booked"
	for _, c := range []struct {
		e    mapper.Estimate
		want string
	}{
		{mapper.Estimate{Memory: 7 * units.GiB, Method: "catalogue"}, asked},
		{mapper.Estimate{Memory: 9 * units.GiB, Method: mapper.FromHistory}, "9.0 GiB booked, a little above what earlier runs"},
		{mapper.Estimate{WholeGPU: true, Method: mapper.FromHistory}, "whole GPUs; when it was submitted: " + asked},
	} {
		if got := estimateDetail(c.e, asked); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}
