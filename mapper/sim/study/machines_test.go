package study

import (
	"strings"
	"testing"

	"carma/configs/servers"
	"carma/configs/traces"
	"carma/estimator/booking"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/sim"
)

// TestMachines checks that the GPUs of several machines are numbered consecutively, and
// that a task on several GPUs has all of them in one machine, under every policy.
func TestMachines(t *testing.T) {
	one, err := Server("sim:"+servers.Default, 2)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Machines(one, 5)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for i, g := range all.GPUs {
		ids[g.UUID] = true
		if g.Index != i {
			t.Errorf("GPU %d has number %d", i, g.Index)
		}
	}
	if len(ids) != 10 || len(one.GPUs) != 2 || one.GPUs[0].Machine != "" {
		t.Errorf("%v, of %+v", ids, one)
	}
	if _, err := Machines(one, MaxGPUs/2+1); err == nil || !strings.Contains(err.Error(), "at most 8192") {
		t.Error(err)
	}
	trace, err := traces.Read("philly-heavy-60")
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := (&taskMaker{catalogue: booking.NewCatalogue(), method: "catalogue"}).tasks(trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policy.Names() {
		several := 0
		_, err := sim.Run(sim.Config{Options: mapper.DefaultsOf(policy), GPUs: GPUs(all), Observe: func(s *mapper.State, _ model.Event, done []model.Decision) {
			for _, d := range done {
				l, ok := d.(model.Launch)
				if !ok || len(l.Grants) < 2 {
					continue
				}
				several++
				nodes := map[string]bool{}
				for _, g := range s.GPUs() {
					for _, grant := range l.Grants {
						if grant.GPU == g.ID {
							nodes[g.Node] = true
						}
					}
				}
				if len(nodes) != 1 || nodes[""] {
					t.Errorf("%s: task %d is on machines %v", policy, l.Task, nodes)
				}
			}
		}}, tasks)
		if err != nil || several == 0 {
			t.Errorf("%s: %d on several GPUs, %v", policy, several, err)
		}
	}
}
