package mapper

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// sharedBy returns a world with one GPU and a kind of sharing.
func sharedBy(t *testing.T, opt model.Options, how model.Sharing) *world {
	t.Helper()
	return newWorldOf(t, opt, model.GPUInfo{ID: "GPU-0", Capacity: 40 * units.GiB, Sharing: how})
}

func of(user string) func(*model.Request) { return func(r *model.Request) { r.User = user } }

// speeds returns the predicted speeds of the tasks on GPU-0.
func (w *world) speeds() (all []float64) {
	for _, r := range w.s.GPU("GPU-0").Residents {
		all = append(all, r.Speed)
	}
	return all
}

// TestCircles checks that, if each user has an MPS server, the tasks of one user run at the
// same time, and users take turns.
func TestCircles(t *testing.T) {
	medium := interference.Load{SMACT: 0.6, DRAMA: 0.3, Step: 0.05}
	put := func(how model.Sharing, users []string, all loads) []float64 {
		w := sharedBy(t, plain(), how)
		for i, user := range users {
			w.expecting(model.Expected{Loads: loads{all[i]}}, of(user))
		}
		return w.speeds()
	}
	same := func(what string, got, want []float64) {
		t.Helper()
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Errorf("%s: speeds %v, want %v", what, got, want)
				return
			}
		}
	}
	two, three := loads{medium, resnet}, loads{medium, resnet, small}
	mps, turns := put(model.SharingMPS, []string{"", ""}, two), put(model.SharingTurns, []string{"", ""}, two)
	if math.Abs(mps[0]-turns[0]) < 0.1 {
		t.Fatalf("%v and %v: this tests nothing", mps, turns)
	}
	same("one user", put(model.SharingUsers, []string{"ada", "ada"}, two), mps)
	same("two users", put(model.SharingUsers, []string{"ada", "bob"}, two), turns)
	same("two users who leave each other time", put(model.SharingUsers, []string{"ada", "bob"}, loads{small, {SMACT: 0.01}}), put(model.SharingMPS, []string{"", ""}, loads{small, {SMACT: 0.01}}))

	// Two of ada's tasks have the same speed beside each other as without bob, for half
	// of the time.
	got := put(model.SharingUsers, []string{"ada", "bob", "ada"}, loads{medium, resnet, small})
	alone := put(model.SharingMPS, []string{"", ""}, loads{medium, small})
	if part := got[0] / alone[0]; math.Abs(part-got[2]/alone[1]) > 1e-9 || part < 0.45 || part > 0.55 {
		t.Errorf("beside bob %v, without him %v", got, alone)
	}
	if got[1] < 0.5 || got[1] > 0.6 {
		t.Errorf("bob's task at %v has less than half of the time", got[1])
	}
	same("three users", put(model.SharingUsers, []string{"ada", "bob", "eve"}, three), put(model.SharingTurns, []string{"", "", ""}, three))
}

// TestUsersShareLess checks that policy carma lets a task join tasks of the same user where
// another user's task may not join. A task that no longer uses MPS may not join either.
func TestUsersShareLess(t *testing.T) {
	newcomer := interference.Load{SMACT: 0.4, DRAMA: 0.2, Step: 0.005}
	for _, row := range []struct {
		how  model.Sharing
		user string
		gpus int
		left bool // a server has failed under it
		want bool
	}{
		{model.SharingUsers, "ada", 1, false, true},
		{model.SharingUsers, "bob", 1, false, false},
		{model.SharingUsers, "ada", 1, true, false},
		{model.SharingMPS, "bob", 1, false, true},
		{model.SharingTurns, "ada", 1, false, false},
		{model.SharingAlone, "ada", 1, false, false},
	} {
		w := sharedBy(t, predicting(), row.how)
		var id model.TaskID
		if row.left {
			id = w.expecting(model.Expected{Loads: loads{newcomer}}, of(row.user))
			w.exit(id, model.ExitMPSFault)
		}
		w.expecting(model.Expected{Loads: loads{resnet}}, of("ada"))
		if row.left {
			w.wait(10 * time.Minute)
		} else {
			id = w.expecting(model.Expected{Loads: loads{newcomer}}, of(row.user))
		}
		if got := w.on(id) != nil; got != row.want {
			why, _ := w.s.Why(id)
			t.Errorf("%+v: placed is %v; %s", row, got, sayWhy(why))
		}
	}
}

// TestSharingIsSwitched checks that, when the sharing of a GPU changes, speeds are
// predicted again and the queue is scheduled.
func TestSharingIsSwitched(t *testing.T) {
	w := sharedBy(t, predicting(), model.SharingTurns)
	now := func(how model.Sharing) {
		w.step(model.GPUsFound{At: w.now, GPUs: []model.GPUInfo{{ID: "GPU-0", Capacity: 40 * units.GiB, Sharing: how}}})
	}
	a := w.expecting(model.Expected{Loads: loads{resnet}}, of("ada"))
	b := w.expecting(model.Expected{Loads: loads{{SMACT: 0.4, DRAMA: 0.2, Step: 0.005}}}, of("ada"))
	w.wantWhy(b, "GPU 0 slowdown")
	now(model.SharingUsers)
	w.wantOn(b, 0)
	w.started(b)
	before := w.task(a).Speed
	now(model.SharingTurns)
	if after := w.task(a).Speed; after > before-0.2 {
		t.Errorf("it goes at %v by turns, at %v before", after, before)
	}
	now(model.SharingAlone)
	w.wantOn(b, 0) // it was there before
	w.wantWhy(w.does(small, ""), "GPU 0 idle tasks=2")
}

// TestUnknownOfAnotherUser checks that an unknown task is scored with its user.
func TestUnknownOfAnotherUser(t *testing.T) {
	w := sharedBy(t, predicting(), model.SharingUsers)
	w.expecting(model.Expected{Loads: loads{small}}, of("ada"))
	w.wantWhy(w.expecting(model.Expected{}, of("bob")), "GPU 0 slowdown")
	w.wantOn(w.expecting(model.Expected{}, of("ada")), 0)
}
