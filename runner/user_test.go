package runner

import (
	"context"
	"errors"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/request"
)

// TestUser: root may choose the user that a task runs as. Tasks of others run
// as their submitters; another choice is refused.
func TestUser(t *testing.T) {
	g := newRig(t)
	ran := make(chan string, 2)
	g.script("train", func(_ context.Context, p *containerstest.Process) int { ran <- p.Spec.User; return 0 })
	s := api.Submit{Image: "train", Mem: int64(units.GiB), User: "7:8"}
	if _, err := g.admission.Submit(g.ctx(), request.Caller{Name: "root"}, s); err != nil {
		t.Fatal(err)
	}
	if user := <-ran; user != "7:8" {
		t.Errorf("root's task ran as %q", user)
	}
	var refused *request.Error
	if _, err := g.admission.Submit(g.ctx(), request.Caller{Name: "ann", UID: 1000, GID: 1000}, s); !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("somebody else's task: %v", err)
	}
	s.User = ""
	if _, err := g.admission.Submit(g.ctx(), request.Caller{Name: "ann", UID: 1000, GID: 1001}, s); err != nil {
		t.Fatal(err)
	}
	if user := <-ran; user != "1000:1001" {
		t.Errorf("somebody else's task ran as %q", user)
	}
}
