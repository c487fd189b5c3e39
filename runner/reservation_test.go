package runner

import (
	"os/user"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/request"
)

// TestReserve: reservations and pins survive a restart; other tasks do not start there, and
// why names the reservation's user.
func TestReserve(t *testing.T) {
	g := newRig(t, byMemory)
	root := request.Caller{Name: "root"}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	g.script("train", untilStopped)
	now := g.Clock.Time()
	ask := api.ReserveRequest{Count: 1, For: me.Username, Until: now.Add(time.Hour), Why: "demo"}
	if _, err := g.control.Reserve(g.ctx(), ann, ask); err == nil {
		t.Error("ann may reserve")
	}
	for _, wrong := range []api.ReserveRequest{
		{Count: 1, For: "nobody-of-that-name", Until: ask.Until}, {Count: 9, For: me.Username, Until: ask.Until}, {Count: 1, For: me.Username, Until: now.Add(-time.Hour)},
		{Count: 1, For: me.Username}, {For: me.Username, Until: ask.Until}, {Count: 1, For: me.Username, Until: ask.Until, Memory: int64(100 * units.GiB)},
	} {
		_, err := g.control.Reserve(g.ctx(), root, wrong)
		if refused, ok := err.(*request.Error); !ok || refused.Status >= 500 {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	made, err := g.control.Reserve(g.ctx(), root, ask)
	if err != nil || made.ID != 1 || len(made.GPUs) != 1 || made.GPUs[0].Index != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := g.control.Reserve(g.ctx(), root, api.ReserveRequest{GPUs: []string{"1"}, For: me.Username, Until: ask.Until}); err == nil {
		t.Error("it is reserved twice")
	}
	first := g.runAs(ann, api.Submit{Image: "train", Mem: int64(30 * units.GiB)})
	g.running(first)
	second := g.runAs(ann, api.Submit{Image: "train", Mem: int64(30 * units.GiB)})
	why, err := g.query.Why(g.ctx(), second)
	if err != nil || why.GPUs[1].Rule != "reserved" {
		t.Errorf("%+v, %v", why, err)
	}
	g.restart()
	if list, err := g.control.Reservations(g.ctx()); err != nil || len(list) != 1 || list[0].Why != "demo" || list[0].For != me.Username {
		t.Errorf("after a restart: %+v, %v", list, err)
	}
	if _, err := g.control.Pin(g.ctx(), ann, first, api.PinRequest{GPUs: []string{"1"}}); err == nil {
		t.Error("it was moved without consent to its stop")
	}
	if err := g.control.Unreserve(g.ctx(), root, 1); err != nil {
		t.Fatal(err)
	}
	if on := g.running(second); on.Attempts[0].GPUs[0].Index != 1 {
		t.Errorf("%+v", on)
	}
	if _, err := g.control.Pin(g.ctx(), ann, first, api.PinRequest{GPUs: []string{"1"}, Stop: true}); err != nil {
		t.Fatal(err)
	}
	g.until(first, "waits for GPU 1", func(t api.Task) bool { return t.Phase == "queued" })
	g.restart()
	if _, err := g.control.Stop(g.ctx(), ann, second, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if on := g.running(first); on.Attempts[1].GPUs[0].Index != 1 {
		t.Errorf("%+v", on.Attempts)
	}
}
