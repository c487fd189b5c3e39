package main

import (
	"math"
	"testing"

	"carma/internal/units"

	"carma/configs/workloads"
)

// TestPlans: for every profile and campaign memory rises to the measured peak
// and stays, and the run has one beginning and one end.
func TestPlans(t *testing.T) {
	for _, p := range workloads.All() {
		for _, campaign := range []string{"v1", "v2"} {
			c, err := p.Campaign(campaign)
			if err != nil {
				continue
			}
			j, err := options{profile: p.Name, campaign: campaign}.job()
			if err != nil {
				t.Fatal(err)
			}
			held := make([]units.Bytes, p.GPUs)
			at, trains, ends := 0.0, 0, 0
			for _, e := range j.plan() {
				if e.at < at || e.bytes < 0 || e.action == alloc && e.bytes%units.MiB != 0 {
					t.Errorf("%s: %+v after %g", p.Name, e, at)
				}
				at = e.at
				switch e.action {
				case alloc:
					held[e.gpu] += e.bytes
				case train:
					trains++
					if held[0] < min(c.Memory, j.context) {
						t.Errorf("%s: trains with %v", p.Name, held[0])
					}
				case end:
					ends++
				default:
					t.Errorf("%s: %+v", p.Name, e)
				}
				if trains > 0 && e.at > 40 && e.action == alloc {
					t.Errorf("%s: grows at %g s", p.Name, e.at)
				}
			}
			if held[0] != c.Memory || trains != 1 || ends != 1 || math.Abs(at-c.RunTime.Seconds()) > 1e-9 {
				t.Errorf("%s %s: holds %v of %v at the end, %g s", p.Name, campaign, held, c.Memory, at)
			}
		}
	}
}

func TestOverrides(t *testing.T) {
	o, err := parse([]string{"--time", "30m", "gpt2_large_2", "-peak=12G", "--context", "500M", "--smact", "0.4209", "--steps-per-epoch", "7", "--fail-at", "40%"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := o.job()
	if err != nil {
		t.Fatal(err)
	}
	if j.seconds != 1800 || j.peaks[0] != 12*units.GiB || j.context != 500*units.MiB || j.steps != 7 || j.failAt != 720 {
		t.Errorf("%+v", j)
	}
	if second := j.peaks[1].GiB() / 12; math.Abs(second-16458.0/28330) > 0.001 {
		t.Errorf("second GPU %v", j.peaks[1])
	}
	if l := j.loads[0]; math.Abs(l.SMACT-0.4209) > 1e-9 || math.Abs(l.DRAMA-0.2139/2) > 1e-9 {
		t.Errorf("load %+v", l)
	}
	last := j.plan()
	if e := last[len(last)-2]; e.action != fail || e.at != 720 {
		t.Errorf("%+v", e)
	}
}
