package root

import (
	"encoding/json"
	"net/http"

	"carma/runner/api"
)

// suspend simulates a daemon that suspends running tasks. The reason may request an outcome:
// fails, slow.
func (d *fakeDaemon) suspend(w http.ResponseWriter, r *http.Request, t *fakeTask) {
	var n api.Note
	_ = json.NewDecoder(r.Body).Decode(&n)
	if t.Phase != "running" {
		problem(w, http.StatusConflict, "task %d is %s and has no GPU; carma hold %d keeps it from being launched", t.ID, t.Phase, t.ID)
		return
	}
	d.update(func() {
		t.Phase, t.Suspension = "suspending", &api.Suspension{By: "ann", Why: n.Why, Host: 21582695629}
	})
	d.answer(w, &t.Task)
	d.update(func() {
		switch n.Why {
		case "fails":
			t.Phase, t.Suspension, t.Reason = "running", nil, "it could not be suspended and runs on: the program uses unified memory"
		case "slow":
		default:
			t.Phase, t.Suspension.Since, t.Waits = "suspended", noon, "suspended by ann: "+n.Why
		}
	})
}

func (d *fakeDaemon) resume(w http.ResponseWriter, _ *http.Request, t *fakeTask) {
	if t.Suspension == nil {
		problem(w, http.StatusConflict, "task %d is not suspended: it is %s", t.ID, t.Phase)
		return
	}
	d.update(func() {
		switch t.Suspension.Back = true; {
		case t.Phase == "suspending":
		case t.Suspension.Why == "wait":
			t.Position, t.Waits = 1, "GPU 0 memory 31.2 of 40.0 GiB reserved, needs 20.1"
		default:
			t.Phase = "resuming"
		}
	})
	d.answer(w, &t.Task)
	d.update(func() {
		if t.Phase == "resuming" {
			t.Phase, t.Suspension = "running", nil
		}
	})
}
