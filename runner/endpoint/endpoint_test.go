package endpoint

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// cluster is an engine whose user ann may get the pods of namespace a.
type cluster struct{ containers.Driver }

func (cluster) Review(_ context.Context, token string) (containers.Subject, error) {
	if token != "ann" {
		return containers.Subject{}, containers.ErrToken
	}
	return containers.Subject{Name: token}, nil
}

func (cluster) Allowed(_ context.Context, _ containers.Subject, a containers.Access) (bool, error) {
	return a.Namespace == "a" && a.Verb == "get", nil
}

func authorizer(t *testing.T) *access.Authorizer {
	by := access.New(access.Config{
		Account: 500, Audit: audit.New(t.TempDir()), Driver: cluster{}, Now: time.Now, Settings: func() access.Settings { return access.Settings{} },
	})
	t.Cleanup(func() { by.Close() })
	return by
}

// endpoints answer with their request's path and its caller.
func endpoints() []Endpoint {
	return []Endpoint{
		Get(api.GetMe, Needs(rights.SeeServer), func(ctx context.Context) (api.Me, error) {
			who, err := request.KnownCaller(ctx)
			return api.Me{User: who.Name}, err
		}),
		Act(api.DrainDaemon, Needs(rights.Drain), func(context.Context, request.Caller, *api.None) (api.Info, error) {
			return api.Info{}, fmt.Errorf("no answer: %w", containers.ErrUnavailable)
		}),
		OfTask(api.GetWhy, OnPods(&access.GetPods, rights.See), func(context.Context, string) (api.Why, error) { return api.Why{}, context.Canceled }),
		Drop(api.RemoveTask, OnPods(&access.DeletePods, rights.Remove), func(context.Context, request.Caller, *api.TaskPath) error { return nil }),
		Act(api.GetWebTicket, Local("the page is local", rights.Page), func(context.Context, request.Caller, *api.None) (api.WebLogin, error) { return api.WebLogin{}, nil }),
	}
}

// ask makes a request and returns the status and the answer.
func ask(h http.Handler, who *request.Caller, method, path, token string) (int, string) {
	req := httptest.NewRequest(method, path, http.NoBody)
	if who != nil {
		req = req.WithContext(request.WithCaller(req.Context(), *who))
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// TestNew checks that a rule is checked before the request is answered, and that errors
// become the statuses of their kinds.
func TestNew(t *testing.T) {
	_, h := New("test", authorizer(t), endpoints())
	ann, root := &request.Caller{UID: 1001, Name: "ann"}, &request.Caller{Name: "root"}
	for _, c := range []struct {
		who          *request.Caller
		method, path string
		status       int
		text         string
	}{
		{ann, "GET", "/v1/whoami", 200, `"ann"`}, {nil, "GET", "/v1/whoami", 403, "the caller is not known"},
		{ann, "POST", "/v1/drain", 403, "is for root; you are ann"}, {root, "POST", "/v1/drain", 503, "no answer"}, {nil, "POST", "/v1/drain", 403, "not known"},
		{ann, "GET", "/v1/tasks/7/why", 503, "the daemon is stopping"}, {ann, "DELETE", "/v1/tasks/7", 204, ""}, {nil, "DELETE", "/v1/tasks/7", 403, "not known"},
	} {
		if status, text := ask(h, c.who, c.method, c.path, ""); status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s %s as %v: %d %s", c.method, c.path, c.who, status, text)
		}
	}
}

// TestGuard checks that a request over TLS has a token, a rule and the right in the cluster,
// and that a task is named by its number behind the guard.
func TestGuard(t *testing.T) {
	recs := map[string]*record.Record{}
	for i, namespace := range []string{"a", "b"} {
		recs["task-"+namespace] = &record.Record{Task: model.Task{Request: model.Request{ID: model.TaskID(i + 7)}}, Submit: api.Submit{Namespace: namespace}}
	}
	find := func(ref string) (*record.Record, error) {
		if rec := recs[ref]; rec != nil {
			return rec, nil
		}
		return nil, request.Errorf(404, "no task %s, but a group", ref)
	}
	h := Guard(endpoints(), authorizer(t), Tasks{Task: find}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		who, _ := request.CallerFrom(req.Context())
		fmt.Fprintf(w, "%s %s", who.Name, req.URL.Path)
	}))
	for _, c := range []struct {
		token, method, path string
		status              int
		text                string
	}{
		{"", "GET", "/v1/whoami", 401, "no token"}, {"bob", "GET", "/v1/whoami", 401, "does not take your token"}, {"ann", "GET", "/v1/whoami", 200, "ann /v1/whoami"},
		{"ann", "GET", "/v1/tasks/task-a/why", 200, "ann /v1/tasks/7/why"}, {"ann", "GET", "/v1/tasks/task-b/why", 404, "no task task-b; "},
		{"ann", "GET", "/v1/tasks/group/why", 404, "no task group; "}, {"ann", "DELETE", "/v1/tasks/task-a", 403, "you may not delete pods"},
		{"ann", "POST", "/v1/web", 403, "the page is local"}, {"ann", "GET", "/metrics", 403, "for the daemon's machine"},
	} {
		if status, text := ask(h, nil, c.method, c.path, c.token); status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s %s with %q: %d %s", c.method, c.path, c.token, status, text)
		}
	}
}
