package runner

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/request"
)

// get asks the daemon for a plain page.
func (g *rig) get(path string) (status int, body string) {
	g.t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(g.dir, "s"))
	}}}
	resp, err := c.Get("http://carma" + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// TestHealth: /healthz does not wait for the loop. /readyz has a line for each problem that
// keeps tasks from being kept or started (F13). Neither sends a query to the loop.
func TestHealth(t *testing.T) {
	long(t)
	g := newRig(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := g.get(path); status != 200 || body != "ok\n" {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	g.engine.Down()
	g.eventually("readyz says that the engine is down", func() bool {
		status, body := g.get("/readyz")
		return status == 503 && strings.Count(body, "\n") == 1 && strings.Contains(body, "does not answer") && strings.Contains(body, "to mend it")
	})
	if status, _ := g.get("/healthz"); status != 200 {
		t.Errorf("healthz with the engine down: %d", status)
	}
	g.engine.Up()
	g.eventually("readyz is well again", func() bool { status, _ := g.get("/readyz"); return status == 200 })

	release, at := make(chan struct{}), make(chan struct{})
	go func() { _ = g.loop.Look(context.Background(), func(*mapper.State) { close(at); <-release }) }()
	<-at
	defer close(release)
	if status, _ := g.get("/healthz"); status != 200 {
		t.Errorf("healthz with a loop that has just begun a round: %d", status)
	}
}

// TestDrain: a draining daemon starts nothing more and ends with its last
// running task. Queued tasks are left to the next daemon.
func TestDrain(t *testing.T) {
	g := newRig(t)
	finish := make(chan struct{})
	g.engine.AddImage("train", containerstest.Image{Run: func(context.Context, *containerstest.Process) int { <-finish; return 0 }})
	g.engine.AddImage("later", containerstest.Image{})
	first := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(first)
	if _, err := g.api.Drain(g.ctx()); err != nil {
		t.Fatal(err)
	}
	later := g.run(api.Submit{Image: "later", Mem: int64(units.GiB)})
	info, err := g.api.Info(g.ctx())
	if err != nil || !info.Draining || len(info.Trouble) != 1 || info.Trouble[0].Scope != "daemon" || info.Queued != 1 || info.Running != 1 {
		t.Errorf("info: %+v, %v", info, err)
	}
	if status, body := g.get("/readyz"); status != 503 || !strings.Contains(body, "drains") {
		t.Errorf("readyz: %d %q", status, body)
	}
	if _, err := g.Drain(g.ctx(), request.Caller{UID: 4711, Name: "ada"}); err == nil {
		t.Error("anybody may drain")
	}
	close(finish)
	began := time.Now()
	select {
	case <-g.ended:
	case <-time.After(stepTimeout):
		t.Fatal("the daemon does not end by itself")
	}
	if took := time.Since(began); took >= drainTail {
		t.Errorf("it ended %v after its last task: nothing else was left to do", took)
	}
	g.stop()
	if n := len(g.left()); n != 0 {
		t.Errorf("%d containers are left", n)
	}
	g.start()
	if task := g.finished(later); task.Phase != "succeeded" || len(task.Attempts) != 1 {
		t.Errorf("the queued task: %s, %+v", task.Phase, task.Attempts)
	}
}

// left returns the containers on the engine.
func (g *rig) left() []containers.Container {
	all, err := g.engine.List(g.ctx(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return all
}
