package runner

import (
	"testing"
	"time"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/control"
)

// TestDrainAllLeavesLonger: draining all GPUs for a time does not shorten a longer drain of
// one of them.
func TestDrainAllLeavesLonger(t *testing.T) {
	g := newRig(t)
	gpus := must[[]api.GPU](t)
	fan := api.CloseRequest{GPUs: []string{"1"}, Why: "loud fan"}
	gpus(g.api.CloseGPUs(g.ctx(), fan))
	for _, row := range []struct {
		name, why string
		q         api.CloseRequest
	}{
		{"for a time", "loud fan", api.CloseRequest{All: true, For: time.Hour, Why: "update"}},
		{"without an end", "update", api.CloseRequest{All: true, Why: "update"}},
		{"by its number", "update", api.CloseRequest{GPUs: []string{"1"}, For: time.Hour, Why: "update"}},
		{"its tasks move", "update", api.CloseRequest{All: true, For: time.Hour, Why: "update", Move: true}},
	} {
		gpus(g.api.CloseGPUs(g.ctx(), api.CloseRequest{GPUs: []string{"0"}, Open: true}))
		gpus(g.api.CloseGPUs(g.ctx(), fan))
		list := gpus(g.api.CloseGPUs(g.ctx(), row.q))
		if c := list[1].Closed; c == nil || c.Why != row.why || (row.why == "loud fan") != c.Until.IsZero() && row.q.For > 0 {
			t.Errorf("%s: GPU 1 is drained by %+v", row.name, c)
		}
		if c := list[0].Closed; row.q.All && (c == nil || c.Why != "update") {
			t.Errorf("%s: GPU 0 is drained by %+v", row.name, c)
		}
	}
	gpus(g.api.CloseGPUs(g.ctx(), api.CloseRequest{GPUs: []string{"1"}, For: 3 * time.Hour, Why: "loud fan"}))
	if list := gpus(g.api.CloseGPUs(g.ctx(), api.CloseRequest{All: true, For: time.Hour})); list[1].Closed.Why != "loud fan" {
		t.Errorf("3 h became %+v", list[1].Closed)
	}
	if list := gpus(g.api.CloseGPUs(g.ctx(), api.CloseRequest{All: true, For: 5 * time.Hour, Why: "update"})); list[1].Closed.Why != "update" {
		t.Errorf("5 h became %+v", list[1].Closed)
	}
}

// TestReservedInOrder: the GPUs of a reservation are shown in the order of their indexes.
// They are stored in the order of their UUIDs.
func TestReservedInOrder(t *testing.T) {
	g := newRig(t)
	v := control.ReservationView(model.Reservation{GPUs: []model.GPUID{"GPU-b", "GPU-a"}}, g.gpus)
	if len(v.GPUs) != 2 || v.GPUs[0].Index != 0 || v.GPUs[1].Index != 1 {
		t.Errorf("shown are %+v", v.GPUs)
	}
}
