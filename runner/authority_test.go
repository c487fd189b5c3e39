package runner

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

func ownsTask(who request.Caller, rec *record.Record) bool {
	return rights.Owns(rights.Caller{UID: who.UID, Name: who.Name}, access.OwnerOf(rec))
}

// ask makes a request as a caller and returns the status and the answer. A stream is cut
// off when it has begun.
func (g *rig) ask(who request.Caller, method, path, body string) (status int, text string) {
	g.t.Helper()
	ctx, cancel := context.WithCancel(g.as(who))
	defer cancel()
	req := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := &answerRecorder{ResponseRecorder: httptest.NewRecorder(), cancel: cancel, silent: path == "/v1/events"}
	g.Handler().ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// answerRecorder ends the request of a stream after its first event.
type answerRecorder struct {
	*httptest.ResponseRecorder
	cancel func()
	silent bool // no event is expected
}

func (w *answerRecorder) Flush() {
	if w.silent {
		w.cancel()
	}
	w.ResponseRecorder.Flush()
}

func (w *answerRecorder) Write(p []byte) (int, error) {
	if w.Header().Get("Content-Type") == "text/event-stream" {
		w.cancel()
	}
	return w.ResponseRecorder.Write(p)
}

// TestAdminInRootsTask checks that a member of admin-group is not root inside a task of
// root's: no command, no terminal, no environment, no output.
func TestAdminInRootsTask(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.AdminGroup = "lab" })
	g.script("train", untilStopped)
	id := g.runAs(rootUser, api.Submit{Image: "train", Mem: int64(units.GiB), ContainerOptions: api.ContainerOptions{TTY: true}, Env: []string{"KEY=s3cret"}})
	g.running(id)
	for path, line := range map[string]string{
		"/exec":   "exec in task " + id + " of root: only root may; you are oper",
		"/attach": "attach to task " + id + " of root: only root may; you are oper",
	} {
		if status, text := g.ask(oper, http.MethodPost, "/v1/tasks/"+id+path, `{"command":["sh"]}`); status != 403 || !strings.Contains(text, line) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := g.ask(oper, http.MethodGet, "/v1/tasks/"+id, ""); status != 200 || strings.Contains(text, "s3cret") || !strings.Contains(text, "KEY=***") {
		t.Errorf("inspect: %d %s", status, text)
	}
	if status, text := g.ask(oper, http.MethodGet, "/v1/tasks/"+id+"/logs", ""); status != 403 {
		t.Errorf("logs: %d %s", status, text)
	}
	if status, text := g.ask(oper, http.MethodPost, "/v1/tasks/"+id+"/stop", `{"now":true}`); status != 200 || strings.Contains(text, "s3cret") {
		t.Errorf("stop: %d %s", status, text)
	}
}
