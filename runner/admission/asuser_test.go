package admission

import (
	"errors"
	"testing"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/request"
)

// TestAsUser checks that a task runs as its submitter, who may name themselves as the user, and
// that root and users of a cluster may choose another user.
func TestAsUser(t *testing.T) {
	ann := request.Caller{UID: 1000, GID: 1001, Name: "ann", Group: "lab"}
	sub := api.Submit{Image: "x", Mem: 1 << 30, User: "0:0"}
	refused, _ := errors.AsType[*request.Error](checkUser(ann, sub))
	if refused == nil || refused.Status != 403 || refused.Text != "--user 0:0: a task runs as its submitter, and only root may choose; leave it out" {
		t.Errorf("%v", refused)
	}
	for _, who := range []request.Caller{{UID: 0, Name: "root"}, request.SubjectCaller(containers.Subject{Name: "ada"}, "a")} {
		if err := checkUser(who, sub); err != nil {
			t.Errorf("%+v: %v", who, err)
		}
	}
}
