package study

import (
	"math"
	"slices"
	"testing"

	"carma/configs/traces"
)

// TestUsers checks that the sums of users equal the sums of their tasks, and with the
// energy of idle GPUs are all energy.
func TestUsers(t *testing.T) {
	server, err := Server("sim:dgx-station-a100", 2)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := traces.Read("philly-t1-60")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"bob", "ann", "bob", ""} {
		trace.Tasks[i].User = name
	}
	rows, err := Rules{Policies: "carma", Estimator: "catalogue"}.Rows()
	if err != nil {
		t.Fatal(err)
	}
	all, err := (&Study{Server: server, Traces: []traces.Trace{trace}, Rows: rows}).Run()
	if err != nil {
		t.Fatal(err)
	}
	o := &all[0].Outcomes[0]
	users := o.Users()
	var names []string
	sum := o.Result.Metrics.IdleJ
	for _, u := range users {
		names = append(names, u.User)
		sum += u.EnergyJ
		if u.GPUTime <= 0 || u.EnergyJ <= 0 {
			t.Errorf("%+v", u)
		}
	}
	if !slices.Equal(names, []string{"", "ann", "bob"}) || users[1].Tasks != 1 || users[2].Tasks != 2 || users[0].Tasks != 57 {
		t.Errorf("%+v", users)
	}
	if one := o.Result.Tasks[1]; users[1].EnergyJ != one.EnergyJ {
		t.Errorf("ann's only task has %v J, she %v", one.EnergyJ, users[1].EnergyJ)
	}
	if e := o.Result.Metrics.EnergyJ; math.Abs(sum/e-1) > 1e-9 || o.Result.Metrics.IdleJ <= 0 || o.Result.Metrics.IdleJ > e/2 {
		t.Errorf("%v J of users and idle GPUs (%v), %v in all", sum, o.Result.Metrics.IdleJ, e)
	}
}
