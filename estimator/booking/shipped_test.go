package booking_test

import (
	"strings"
	"testing"

	"carma/configs/traces"
	"carma/configs/workloads"
	"carma/estimator"
	"carma/estimator/booking"
)

// Every workload, model and trace that ships can be estimated by name.
func TestCatalogue(t *testing.T) {
	c := booking.NewCatalogue()
	estimate := func(q estimator.Query) estimator.Estimate {
		t.Helper()
		e, err := c.Estimate(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
		}
		return e
	}
	for _, p := range workloads.All() {
		m, err := p.Campaign("")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if e := estimate(estimator.Query{Model: name, GPUs: p.GPUs}); e.Point != m.Memory {
				t.Errorf("%s: %+v, measured %s", name, e, m.Memory)
			}
		}
		if e := estimate(estimator.Query{Model: p.Model, Batch: p.BatchSize, GPUs: p.GPUs}); e.Point < m.Memory {
			t.Errorf("%s at %d: %+v, measured %s", p.Model, p.BatchSize, e, m.Memory)
		}
	}
	for _, name := range traces.Names() {
		trace, err := traces.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range trace.Tasks {
			p, _ := workloads.Find(task.Workload)
			m, _ := p.Campaign(trace.Campaign)
			if e := estimate(estimator.Query{Model: booking.InCampaign(task.Workload, trace.Campaign)}); e.Point != m.Memory {
				t.Errorf("%s, %s: %+v, measured %s", name, task.Workload, e, m.Memory)
			}
		}
	}
	if e := estimate(estimator.Query{Model: "bert-base-uncased", Batch: 32}); e.WholeGPU {
		t.Errorf("%+v", e)
	}
	if _, err := c.Estimate(estimator.Query{Model: "resnet5"}); err == nil || !strings.Contains(err.Error(), "resnet50") {
		t.Errorf("%v", err)
	}
	for _, name := range c.Names() {
		if strings.Contains(name, "@") {
			t.Errorf("%s is suggested", name)
		}
	}
}
