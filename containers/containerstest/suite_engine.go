package containerstest

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"carma/containers"
)

func testEngine(t *testing.T, s *suite) {
	e, err := s.d.Ping(s.ctx)
	if err != nil || e.Version == "" || e.APIVersion == "" || len(e.Runtimes) == 0 {
		t.Errorf("Ping = %+v, %v, want versions and runtimes", e, err)
	}
	if s.d.Name() == "" {
		t.Error("Name is empty")
	}
}

func testImage(t *testing.T, s *suite) {
	img, err := s.d.Image(s.ctx, s.img.Tool)
	if s.img.Lacks.Images {
		if want := (containers.Image{ID: s.img.Tool, Unseen: true}); err != nil || !reflect.DeepEqual(img, want) {
			t.Errorf("Image = %+v, %v, want %+v", img, err, want)
		}
		return
	}
	if err != nil || img.ID == "" || img.User != ToolUser || img.Labels[ToolLabel] != "tool" {
		t.Errorf("Image = %+v, %v, want user %s and label %s", img, err, ToolUser, ToolLabel)
	}
	_, err = s.d.Image(s.ctx, s.img.Missing)
	s.failsWith("image", err, containers.ErrNotFound)
	if err := s.d.Pull(s.ctx, s.img.Missing, containers.Credential{}); err == nil {
		t.Error("Pull of a missing image succeeded")
	}
}

func testNotFound(t *testing.T, s *suite) {
	const id = "0123456789abcdef"
	s.failsWith("start", s.d.Start(s.ctx, id), containers.ErrNotFound)
	_, err := s.d.Wait(s.ctx, id)
	s.failsWith("wait", err, containers.ErrNotFound)
	err = s.d.Logs(s.ctx, id, time.Time{}, true, func(time.Time, containers.Stream, []byte, bool) {})
	s.failsWith("logs", err, containers.ErrNotFound)
	_, err = s.d.Attached(s.ctx, id)
	s.failsWith("attached", err, containers.ErrNotFound)
}

func testClose(t *testing.T, s *suite) {
	spec := s.spec("out:ready", "block:9")
	other := s.newDriver(t)
	id, err := other.Create(s.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	s.removeLater(id)
	if err := other.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.follow(id).until("ready") // from a driver that did not make the container
	list := s.list()
	if len(list) != 1 || list[0].ID != id || list[0].Name != spec.Name || list[0].State != containers.StateRunning {
		t.Errorf("list = %+v, want %s running", list, id)
	}
	s.stop(id, time.Minute)
	if exit := s.wait(id); exit.Code != 9 {
		t.Errorf("exit = %+v, want code 9", exit)
	}
}

func testConcurrent(t *testing.T, s *suite) {
	specs := []containers.Spec{}
	for range 6 {
		specs = append(specs, s.spec("lines:20", "exit:4"))
	}
	var wg sync.WaitGroup
	for _, spec := range specs {
		wg.Go(func() {
			id, err := s.d.Create(s.ctx, spec)
			if err == nil {
				err = s.d.Start(s.ctx, id)
			}
			if err != nil {
				t.Error(err)
				return
			}
			var log record
			if err := s.d.Logs(s.ctx, id, time.Time{}, true, log.add); err != nil {
				t.Error(err)
			}
			if n := len(log.lines(containers.Stderr)); n != 20 && !s.img.Lacks.Streams {
				t.Errorf("%d lines, want 20", n)
			}
			if n := len(log); n != 40 {
				t.Errorf("%d lines of both streams, want 40", n)
			}
			if exit, err := s.d.Wait(s.ctx, id); err != nil || exit.Code != 4 {
				t.Errorf("Wait = %+v, %v", exit, err)
			}
			if _, err := s.d.List(s.ctx, spec.Labels); err != nil {
				t.Error(err)
			}
			if err := s.d.Remove(s.ctx, id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list := s.list(); len(list) != 0 {
		t.Errorf("left over: %v", list)
	}
}

func testList(t *testing.T, s *suite) {
	spec := s.spec("block:0")
	spec.Labels["colour"] = "blue"
	blue := s.startSpec(spec)
	red := s.create(s.spec())
	find := func(labels map[string]string) []string {
		t.Helper()
		list, err := s.d.List(s.ctx, labels)
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		slices.Sort(ids)
		return ids
	}
	both := []string{blue, red}
	slices.Sort(both)
	s.equal("by test", find(map[string]string{markLabel: s.mark}), both)
	s.equal("by both labels", find(map[string]string{markLabel: s.mark, "colour": "blue"}), []string{blue})
	s.equal("by another value", find(map[string]string{markLabel: s.mark, "colour": "green"}), []string{})
	for _, c := range s.list() {
		if c.Labels[markLabel] != s.mark || (c.ID == blue) != (c.Labels["colour"] == "blue") {
			t.Errorf("labels of %s = %v", c.Name, c.Labels)
		}
	}
}
