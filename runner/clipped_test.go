package runner

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"carma/runner/api"
	"carma/runner/request"
)

// TestClipped: an answer quotes at most a sentence of a request.
func TestClipped(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("ok", untilStopped)
	long := strings.Repeat("é", 8<<20/2)
	for name, body := range map[string]string{
		"a group":        `{"group": "` + long + `", "tasks": [{"image": "ok"}]}`,
		"unknown fields": `{"tasks": [{"image": "ok", "a": 1, "b": 1, "c": 1, "workdir": "` + long + `"}]}`,
		"a field's name": `{"tasks": [{"image": "ok", "` + long + `": 1}]}`,
		"a model":        `{"tasks": [{"image": "ok", "est_model": "` + long + `"}]}`,
		"a dependency":   `{"tasks": [{"image": "ok", "after": [{"task": "` + long + `"}]}]}`,
		"a priority":     `{"tasks": [{"image": "ok", "priority": "` + long + `"}]}`,
		"no JSON":        `{"tasks": [{"image": "` + long,
	} {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, "/v1/submissions", strings.NewReader(body))
		g.Handler().ServeHTTP(w, req.WithContext(request.WithCaller(g.ctx(), ann)))
		if w.Code/100 != 4 || w.Body.Len() > 4*request.MaxText || !utf8.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d with %d bytes: %.200s", name, w.Code, w.Body.Len(), w.Body)
		}
	}
	ref := g.run(api.Submit{Image: "ok"})
	g.running(ref)
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{Reason: long}); err == nil || len(err.Error()) > request.MaxText {
		t.Errorf("a reason of 8 MiB: %v", err)
	}
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{Reason: strings.Repeat("x", 501)}); err == nil {
		t.Error("a reason of 501 letters was taken")
	}
	g.asksToStop(ref, api.StopRequest{Reason: "enough"})
}
