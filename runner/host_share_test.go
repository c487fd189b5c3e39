package runner

import (
	"errors"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/helpers"
	"carma/runner/machine"
	"carma/runner/request"
	"carma/runner/suites"
	"carma/runner/verify"
)

// TestHelperBooks: the allocations of helpers and of tasks are shown together and do not exceed
// the machine. They survive a restart, are released when their suite no longer exists, and the
// journal can be verified.
func TestHelperBooks(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Bounds.All = machine.Share{HostMem: units.GiB, CPUs: 1} })
	g.script("train", untilStopped)
	book := func(suite string, share helpers.Share, how helpers.How) error {
		return suites.Books{Loop: g.loop, Memory: g.hostMem, Bounds: func() machine.Bounds { return g.live().Bounds }}.Book(g.ctx(), suite, share, how)
	}
	var full *helpers.FullError
	var refused *request.Error
	if err := book("1000/lab", helpers.Share{HostMem: 2 << 30}, helpers.Look); !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("more than there is: %v", err)
	}
	if err := book("1000/lab", helpers.Share{CPUs: 7}, helpers.Ask); !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("more processors than there are: %v", err)
	}
	if err := book("1000/lab", helpers.Share{HostMem: 400 << 20, CPUs: 0.25}, helpers.Ask); err != nil {
		t.Fatal(err)
	}
	first := g.runAs(ann, api.Submit{Image: "train", NoGPU: true, HostMem: 500 << 20, CPUs: 0.5})
	g.running(first)
	if err := book("1001/lab", helpers.Share{HostMem: 200 << 20}, helpers.Ask); !errors.As(err, &full) || full.Text != "it needs 200 MiB of host memory; 124 MiB of 1.0 GiB can be booked now, as helpers of suites have 400 MiB" {
		t.Errorf("no room: %v", err)
	}
	if err := book("1001/lab", helpers.Share{HostMem: 200 << 20}, helpers.Look); err != nil {
		t.Errorf("it would have room at another time: %v", err)
	}
	second := g.runAs(ann, api.Submit{Image: "train", NoGPU: true, HostMem: 200 << 20, CPUs: 0.25})
	if why, err := g.query.Why(g.ctx(), second); err != nil || why.ReasonCode != "host-memory" || !strings.Contains(why.Summary, "helpers of suites have 400 MiB") {
		t.Errorf("%+v, %v", why, err)
	}
	h, err := g.overview.Host(g.ctx())
	if err != nil || len(h.Helpers) != 1 || h.Helpers[0].Suite != "lab" || h.Helpers[0].Memory != 400<<20 || h.Booked != 900<<20 || h.CPUsBooked != 0.75 {
		t.Errorf("%+v, %v", h, err)
	}
	g.restart() // no suite is stored, so its allocation is released
	g.running(second)
	if h, err := g.overview.Host(g.ctx()); err != nil || len(h.Helpers) > 0 {
		t.Errorf("%+v, %v", h, err)
	}
	g.stop()
	g.stop = nil
	if v, err := verify.Journal(g.dir, "test"); err != nil || len(v.Faults) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
}
