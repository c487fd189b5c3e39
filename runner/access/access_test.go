package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// cluster is an engine with users and namespaces. Its rights are name, verb, resource and
// namespace.
type cluster struct {
	containers.Driver
	rights map[string]bool
	silent bool
	asked  int // about tokens
}

func (c *cluster) Namespace() string    { return "carma" }
func (c *cluster) Served() []string     { return []string{"a", "b", "carma"} }
func (c *cluster) Serves(n string) bool { return n != "c" }

func (c *cluster) Review(_ context.Context, token string) (containers.Subject, error) {
	c.asked++
	name, ok := strings.CutPrefix(token, "token-of-")
	switch {
	case c.silent:
		return containers.Subject{}, fmt.Errorf("%w: connection refused", containers.ErrUnavailable)
	case !ok:
		return containers.Subject{}, fmt.Errorf("%w: unknown", containers.ErrToken)
	}
	return containers.Subject{Name: name}, nil
}

func (c *cluster) Allowed(_ context.Context, who containers.Subject, a containers.Access) (bool, error) {
	if c.silent {
		return false, containers.ErrUnavailable
	}
	return c.rights[who.Name+" "+a.Verb+" "+a.Resource+" "+a.Namespace], nil
}

var (
	ann  = request.Caller{UID: 1001, Name: "ann", Group: "lab", Groups: []string{"lab"}}
	bob  = request.Caller{UID: 1002, Name: "bob"}
	oper = request.Caller{UID: 1003, Name: "oper", Groups: []string{"ops"}}
)

func newAuthorizer(t *testing.T, driver containers.Driver, s *Settings) *Authorizer {
	a := New(Config{
		Account: 500, Audit: audit.New(t.TempDir()), Driver: driver, Now: func() time.Time { return time.Unix(1e9, 0) },
		Settings: func() Settings { return *s },
	})
	t.Cleanup(func() { a.Close() })
	return a
}

func taskOf(who request.Caller, namespace string) *record.Record {
	return &record.Record{
		Task: model.Task{Request: model.Request{ID: 7}, Attempts: []model.Attempt{{Class: model.ExitProgram, Message: "exit code 3: s3cret"}}},
		UID:  who.UID, User: who.Name, Submit: api.Submit{Env: []string{"KEY=s3cret"}, Namespace: namespace},
	}
}

func status(err error) int {
	if refused, ok := errors.AsType[*request.Error](err); ok {
		return refused.Status
	}
	return 0
}

// TestAuthorize checks that the settings in force decide, and that the acts of an
// administrator are in the audit log, allowed or refused.
func TestAuthorize(t *testing.T) {
	s := &Settings{}
	a := newAuthorizer(t, nil, s)
	if got := status(a.Authorize(oper, rights.Stop, taskOf(ann, ""), "")); got != 403 {
		t.Errorf("before the group is set: %d", got)
	}
	s.AdminGroup = "ops"
	if err := a.Authorize(oper, rights.Stop, taskOf(ann, ""), "too long"); err != nil || !a.Administers(oper) || a.Administers(ann) {
		t.Error(err)
	}
	if got := status(a.AuthorizeServer(oper, rights.MountAll, "", "")); got != 403 {
		t.Errorf("an act of root's: %d", got)
	}
	if err := a.AuthorizeServer(oper, rights.Pause, "GPUs", "power"); err != nil || status(a.AuthorizeServer(bob, rights.Pause, "", "")) != 403 {
		t.Error(err)
	}
	found, err := a.Audit(request.WithCaller(t.Context(), request.Caller{Name: "root"}), api.AuditOptions{})
	if err != nil || len(found.Records) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	if r := found.Records[0]; r.Who != "oper" || r.Action != "stop" || r.Owner != "ann" || r.Task != 7 || r.Detail != "too long" || !r.Allowed || r.At.Unix() != 1e9 {
		t.Errorf("%+v", r)
	}
	if found.Records[1].Allowed || found.Records[2].Object != "GPUs" {
		t.Errorf("%+v", found.Records[1:])
	}
	if mine, err := a.Audit(request.WithCaller(t.Context(), ann), api.AuditOptions{}); err != nil || len(mine.Records) != 1 {
		t.Errorf("ann reads %+v, %v", mine, err)
	}
}

// TestShown checks that a record loses the parts that a caller may not see, and that the
// record itself does not change.
func TestShown(t *testing.T) {
	a, rec := newAuthorizer(t, nil, &Settings{}), taskOf(ann, "")
	for _, c := range []struct {
		who          request.Caller
		env, message string
	}{{ann, "KEY=s3cret", "exit code 3: s3cret"}, {bob, "KEY=***", "exit code 3"}} {
		got := a.Shown(request.WithCaller(t.Context(), c.who), rec, rights.Environment)
		if got.Submit.Env[0] != c.env || got.Task.Attempts[0].Message != c.message {
			t.Errorf("%s sees %q, %q", c.who.Name, got.Submit.Env, got.Task.Attempts[0].Message)
		}
	}
	if rec.Submit.Env[0] != "KEY=s3cret" || rec.Task.Attempts[0].Message != "exit code 3: s3cret" {
		t.Errorf("the record has changed: %+v", rec)
	}
}

// TestHighPriority checks each form of the setting.
func TestHighPriority(t *testing.T) {
	for may, want := range map[string][3]bool{
		"": {true, true, true}, "all": {true, true, true}, "admins": {false, false, true}, "bob": {false, true, true}, "lab, x": {true, false, true},
	} {
		a := newAuthorizer(t, nil, &Settings{AdminGroup: "ops", HighPriority: may})
		for i, who := range []request.Caller{ann, bob, oper} {
			if err := a.AuthorizeHighPriority(who); (err == nil) != want[i] {
				t.Errorf("%q, %s: %v", may, who.Name, err)
			}
		}
	}
}

// TestAccount checks which group a task is charged to.
func TestAccount(t *testing.T) {
	a := newAuthorizer(t, nil, &Settings{AdminGroup: "ops"})
	for _, c := range []struct {
		who         request.Caller
		asked, want string
		status      int
	}{{ann, "", "lab", 0}, {ann, "lab", "lab", 0}, {ann, "other", "", 403}, {bob, "lab", "", 403}, {oper, "other", "other", 0}} {
		if got, err := a.Account(c.who, c.asked); got != c.want || status(err) != c.status {
			t.Errorf("%s asks for %q: %q, %v", c.who.Name, c.asked, got, err)
		}
	}
}

// TestFilter checks that a user of a cluster knows of the tasks in the namespaces where the
// user may get pods, and of none while the cluster does not answer.
func TestFilter(t *testing.T) {
	engine := &cluster{rights: map[string]bool{"ann get pods a": true}}
	a := newAuthorizer(t, engine, &Settings{})
	who := request.SubjectCaller(containers.Subject{Name: "ann"}, "a")
	ctx := request.WithCaller(t.Context(), who)
	f := a.Filter(ctx)
	if f.All() || !f.Shows(taskOf(who, "a")) || f.Shows(taskOf(who, "b")) || f.Shows(taskOf(who, "")) || f.Err() != nil {
		t.Errorf("%+v", f)
	}
	hidden := request.Errorf(404, "no task 7")
	if got := status(a.AuthorizePods(ctx, who, DeletePods, hidden, taskOf(who, "a"), taskOf(who, "b"))); got != 403 {
		t.Errorf("a task that ann sees and may not delete: %d", got)
	}
	if got := status(a.AuthorizePods(ctx, who, GetPods, hidden, taskOf(who, "a"), taskOf(who, "b"))); got != 404 {
		t.Errorf("a task that ann does not see: %d", got)
	}
	if f := a.Filter(t.Context()); !f.All() || !f.Shows(taskOf(who, "b")) {
		t.Error("a user of the machine does not know of all tasks")
	}
	engine.silent = true
	if f := a.Filter(ctx); f.Shows(taskOf(who, "c")) || status(f.Err()) != 503 {
		t.Errorf("without an answer: %v", f.Err())
	}
}

// TestPlacement checks where users of a cluster and of the machine may run tasks.
func TestPlacement(t *testing.T) {
	engine := &cluster{rights: map[string]bool{"ann create pods a": true, "ann create resourceclaims a": true, "ann create pods b": true}}
	a, subject := newAuthorizer(t, engine, &Settings{}), request.SubjectCaller(containers.Subject{Name: "ann"}, "a")
	plain := newAuthorizer(t, nil, &Settings{})
	none := func(string) ([]*record.Record, error) { return nil, nil }
	for _, c := range []struct {
		by     *Authorizer
		who    request.Caller
		s      api.Submit
		in     string
		status int
	}{
		{a, subject, api.Submit{}, "a", 0}, {a, subject, api.Submit{Namespace: "b"}, "b", 403}, {a, subject, api.Submit{Namespace: "c"}, "c", 422}, {a, subject, api.Submit{Namespace: "A!"}, "A!", 422},
		{a, subject, api.Submit{Account: "lab"}, "", 422}, {a, bob, api.Submit{}, "carma", 0}, {a, bob, api.Submit{Namespace: "a"}, "a", 403}, {a, request.Caller{}, api.Submit{Namespace: "a"}, "a", 0},
		{plain, bob, api.Submit{}, "", 0}, {plain, bob, api.Submit{Namespace: "a"}, "a", 422},
	} {
		s := c.s
		if err := c.by.Placement(t.Context(), c.who, none)(&s); status(err) != c.status || s.Namespace != c.in {
			t.Errorf("%s with %+v: in %q, %v", c.who.Name, c.s.Namespace, s.Namespace, err)
		}
	}
}

// TestReviews checks that answers of the cluster, positive and negative, are cached for a short
// time.
func TestReviews(t *testing.T) {
	engine, now := &cluster{rights: map[string]bool{"ann get pods a": true}}, time.Now()
	v := newReviews(engine, func() time.Time { return now })
	token := func(token string, status, asked int) {
		t.Helper()
		_, err := v.whose(t.Context(), token)
		refused, _ := errors.AsType[*request.Error](err)
		if (status == 0) != (err == nil) || refused != nil && refused.Status != status || engine.asked != asked {
			t.Fatalf("%v after %d questions; want %d after %d", err, engine.asked, status, asked)
		}
	}
	token("token-of-ann", 0, 1)
	token("token-of-ann", 0, 1)
	token("stolen", 401, 2)
	token("stolen", 401, 2)
	now = now.Add(tokenBad)
	token("stolen", 401, 3)
	token("token-of-ann", 0, 3)
	now = now.Add(tokenGood)
	token("token-of-ann", 0, 4)
	engine.silent = true
	token("token-of-ann", 0, 4)
	token("token-of-bob", 503, 5)
	engine.silent = false
	token("token-of-bob", 0, 6) // a missing answer is not cached

	who := &containers.Subject{Name: "ann"}
	if yes, err := v.may(t.Context(), who, in(GetPods, "a")); !yes || err != nil {
		t.Fatal(yes, err)
	}
	clear(engine.rights)
	if yes, _ := v.may(t.Context(), who, in(GetPods, "a")); !yes {
		t.Error("it is asked each time")
	}
	now = now.Add(accessGood)
	if yes, _ := v.may(t.Context(), who, in(GetPods, "a")); yes {
		t.Error("a right that is lost counts for ever")
	}
}

// TestForget: the cluster's answer about a token is kept for a while, unless it is forgotten.
func TestForget(t *testing.T) {
	c := &cluster{}
	a := newAuthorizer(t, c, &Settings{})
	ask := func() {
		t.Helper()
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.Header.Set("Authorization", "Bearer token-of-ann")
		if who, err := a.Bearer(req); err != nil || who.Name != "ann" {
			t.Fatalf("%+v, %v", who, err)
		}
	}
	ask()
	ask()
	if c.asked != 1 {
		t.Errorf("the cluster was asked %d times", c.asked)
	}
	a.Forget()
	ask()
	if c.asked != 2 {
		t.Errorf("after that the cluster was asked %d times", c.asked)
	}
	newAuthorizer(t, nil, &Settings{}).Forget() // an engine without users
}
