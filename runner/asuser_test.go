package runner

import (
	"testing"

	"carma/containers"
	"carma/runner/api"
)

// TestAsUser checks that a task runs as its submitter, who may name themselves as the user, and
// that root and users of a cluster may choose another user.
func TestAsUser(t *testing.T) {
	ann := Caller{UID: 1000, GID: 1001, Name: "ann", Group: "lab"}
	for user, own := range map[string]bool{
		"1000": true, "ann": true, "1000:1001": true, "ann:lab": true, "1000:lab": true,
		"0": false, "root": false, "1001": false, "1000:0": false, "ann:wheel": false, ":1001": false, "1000:1001:x": false,
	} {
		if ann.is(user) != own {
			t.Errorf("ann is %q: %v", user, !own)
		}
	}
	g := &rig{t: t}
	sub := api.Submit{Image: "x", Mem: 1 << 30, User: "0:0"}
	g.refusedTo(checkUser(ann, sub), 403, "--user 0:0: a task runs as its submitter, and only root may choose; leave it out")
	for _, who := range []Caller{{UID: 0, Name: "root"}, subjectCaller(containers.Subject{Name: "ada"}, "a")} {
		if err := checkUser(who, sub); err != nil {
			t.Errorf("%+v: %v", who, err)
		}
	}
}
