package containerstest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"carma/containers"
)

func testCreate(t *testing.T, s *suite) {
	id := s.create(s.spec("out:ran"))
	if got := s.state(id); got != containers.StateCreated {
		t.Errorf("state = %s, want created", got)
	}
	if got := s.logs(id, time.Time{}, true); len(got) != 0 {
		t.Errorf("logs of a container that never ran: %v", got)
	}
}

func testCreateAgain(t *testing.T, s *suite) {
	spec := s.spec("out:ready", "block:0")
	spec.Identity = map[string]string{"attempt": "1", "nonce": s.mark}
	id := s.create(spec)
	again := func(when string) {
		t.Helper()
		got, err := s.d.Create(s.ctx, spec)
		if err != nil || got != id {
			t.Errorf("create again, %s = %q, %v, want %q", when, got, err, id)
		}
	}
	again("created")
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	again("running")
	s.follow(id).until("ready") // now it handles the stop signal; the kernel drops unhandled signals to process 1
	s.stop(id, time.Minute)
	again("exited")
	// Only the identity is compared.
	spec.Labels = map[string]string{"grant": "another"}
	again("with other labels")
	spec.Command, spec.Env, spec.Park, spec.Attach = []string{"out:other"}, []string{"A=B"}, true, "no such mode"
	again("made from something else")
	spec.Image, spec.Mounts = s.img.Missing, []containers.Mount{{Source: "/no/such/folder", Target: "/x"}}
	again("of an image that is gone, with a mount that is gone")
	if n := len(s.list()); n != 1 {
		t.Errorf("%d containers, want 1", n)
	}
}

func testCreateConflict(t *testing.T, s *suite) {
	spec := s.spec("out:mine")
	spec.Identity = map[string]string{"task": "1", "nonce": "mine"}
	s.create(spec)
	for what, identity := range map[string]map[string]string{
		"another nonce": {"task": "1", "nonce": "another"},
		"a label more":  {"task": "1", "nonce": "mine", "daemon": "other"},
		"no identity":   nil,
	} {
		spec.Identity = identity
		_, err := s.d.Create(s.ctx, spec)
		s.failsWith(what, err, containers.ErrTaken)
		for _, kind := range []error{containers.ErrNotFound, containers.ErrInvalid, containers.ErrUnavailable} {
			if errors.Is(err, kind) {
				t.Errorf("%s: the name conflict wraps %q: %v", what, kind, err)
			}
		}
	}
	if n := len(s.list()); n != 1 {
		t.Errorf("%d containers, want the first one only", n)
	}
}

func testCreateInvalid(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Image = s.img.Missing
	if s.img.Lacks.Images {
		id := s.create(spec)
		s.failsWith("start of a missing image", s.d.Start(s.ctx, id), containers.ErrInvalid)
		if exit := s.wait(id); exit.Error == "" || exit.Code == 0 || !exit.Started.IsZero() {
			t.Errorf("missing image: Wait = %+v, want an error, a code and no start", exit)
		}
		if err := s.d.Remove(s.ctx, id); err != nil {
			t.Error(err)
		}
	} else {
		_, err := s.d.Create(s.ctx, spec)
		s.failsWith("missing image", err, containers.ErrNotFound)
	}

	for what, spoil := range map[string]func(*containers.Spec){
		"zero byte":      func(c *containers.Spec) { c.Env = []string{"A=\x00"} },
		"name":           func(c *containers.Spec) { c.Name = "no good name" },
		"workdir":        func(c *containers.Spec) { c.WorkDir = "relative" },
		"mount source":   func(c *containers.Spec) { c.Mounts = []containers.Mount{{Source: "/no/such/folder", Target: "/x"}} },
		"mount target":   func(c *containers.Spec) { c.Mounts = []containers.Mount{{Source: t.TempDir(), Target: "x"}} },
		"mount over all": func(c *containers.Spec) { c.Mounts = []containers.Mount{{Source: t.TempDir(), Target: "/"}} },
	} {
		spec := s.spec()
		spoil(&spec)
		id, err := s.d.Create(s.ctx, spec)
		if err == nil {
			s.removeLater(id)
		}
		s.failsWith(what, err, containers.ErrInvalid)
	}
	if list := s.list(); len(list) != 0 {
		t.Errorf("refused containers exist: %v", list)
	}
}

func testStartInvalid(t *testing.T, s *suite) {
	for what, spoil := range map[string]func(*containers.Spec){
		"entrypoint path": func(c *containers.Spec) { c.Entrypoint = []string{"/no/such/program"} },
		"entrypoint name": func(c *containers.Spec) { c.Entrypoint = []string{"nosuchprogram"} },
		"user":            func(c *containers.Spec) { c.User = "nosuchuser" },
	} {
		spec := s.spec()
		spoil(&spec)
		id := s.create(spec)
		s.failsWith(what, s.d.Start(s.ctx, id), containers.ErrInvalid)
		// A daemon restarted in between gets the same from Wait.
		if exit := s.wait(id); exit.Error == "" || exit.Code == 0 || !exit.Started.IsZero() {
			t.Errorf("%s: Wait = %+v, want an error, a code and no start", what, exit)
		}
	}
}

func testStartAgain(t *testing.T, s *suite) {
	id := s.start("out:once", "block:0")
	s.follow(id).until("once")
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Errorf("start of a running container: %v", err)
	}
	s.stop(id, time.Minute)
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Errorf("start of an exited container: %v", err)
	}
	if got := s.state(id); got != containers.StateExited {
		t.Errorf("state = %s, want exited", got)
	}
	s.equal("output", s.logs(id, time.Time{}, false).lines(containers.Stdout), []string{"once"})
}

func testStartConcurrent(t *testing.T, s *suite) {
	id := s.create(s.spec("out:once"))
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := s.d.Start(s.ctx, id); err != nil {
				t.Errorf("start: %v", err)
			}
		})
	}
	wg.Wait()
	s.wait(id)
	s.equal("output", s.logs(id, time.Time{}, false).lines(containers.Stdout), []string{"once"})
}
