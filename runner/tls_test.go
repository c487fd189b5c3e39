package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// parted is a fake engine with namespaces and users. Their rights are verb and resource in
// a namespace: "get pods/log a".
type parted struct {
	*containerstest.Fake

	mu      sync.Mutex
	serves  []string // nil means all
	rights  map[string][]string
	silent  bool
	reviews int
	specs   []containers.Spec
	full    map[string]error // errors for new pods, by namespace
}

func (p *parted) Unwrap() containers.Driver { return p.Fake }
func (p *parted) Namespace() string         { return "carma" }
func (p *parted) Served() []string          { return p.serves }
func (p *parted) Serves(n string) bool      { return p.serves == nil || slices.Contains(p.serves, n) }

func (p *parted) Create(ctx context.Context, s containers.Spec) (string, error) {
	p.mu.Lock()
	p.specs = append(p.specs, s)
	full := p.full[s.Namespace]
	p.mu.Unlock()
	if full != nil {
		return "", full
	}
	return p.Fake.Create(ctx, s)
}

func (p *parted) Review(_ context.Context, token string) (containers.Subject, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reviews++
	name, ok := strings.CutPrefix(token, "token-of-")
	switch {
	case p.silent:
		return containers.Subject{}, fmt.Errorf("%w: connection refused", containers.ErrUnavailable)
	case !ok:
		return containers.Subject{}, fmt.Errorf("%w: unknown", containers.ErrToken)
	}
	return containers.Subject{Name: name, Groups: []string{"carma", "group-of-" + name}}, nil
}

func (p *parted) Allowed(_ context.Context, who containers.Subject, a containers.Access) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent {
		return false, fmt.Errorf("%w: connection refused", containers.ErrUnavailable)
	}
	what := a.Resource
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	return slices.Contains(p.rights[who.Name], a.Verb+" "+what+" "+a.Namespace), nil
}

// all are the rights of somebody who works in a namespace.
func allRights(namespace string) (all []string) {
	for _, what := range []string{"create pods", "create resourceclaims", "get pods", "get pods/log", "delete pods", "create pods/exec", "create pods/attach"} {
		all = append(all, what+" "+namespace)
	}
	return all
}

// remoteRig is a daemon with an API for users of a cluster. ann works in namespace a, bob in b.
type remoteRig struct {
	*rig
	engine *parted
	url    string
}

func newRemoteRig(t *testing.T, change ...func(*rig)) *remoteRig {
	engine := &parted{rights: map[string][]string{"ann": allRights("a"), "bob": allRights("b")}}
	g := &remoteRig{engine: engine}
	g.rig = newRig(t, append([]func(*rig){func(r *rig) {
		engine.Fake = r.engine
		r.driver = engine
		r.opt.ClusterAdmins = []string{"root-of-all", "@group-of-olga"}
		r.opt.AdminGroup = "carma" // a group of the machine; everybody is in one of the cluster that has its name
	}}, change...)...)
	g.serve()
	return g
}

func (g *remoteRig) serve() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := g.Runner
		r.server.Remote(g.ctx()).ServeHTTP(w, req)
	}))
	g.t.Cleanup(server.Close)
	g.url = server.URL
}

// forget empties the cache, so that the cluster is asked again.
func (g *remoteRig) forget() { g.authz.Forget() }

// ask makes a request as a user, or without a token if user is empty.
func (g *remoteRig) ask(user, method, path string, body any) (status int, text string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), stepTimeout)
	defer cancel()
	var b strings.Builder
	if body != nil {
		_ = json.NewEncoder(&b).Encode(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(b.String()))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if user != "" {
		req.Header.Set("Authorization", "Bearer token-of-"+user)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	var problem struct{ Detail string }
	if resp.StatusCode >= 300 && json.Unmarshal(all, &problem) == nil && problem.Detail != "" {
		if strings.Contains(problem.Detail, "\n") {
			g.t.Errorf("%s %s: more than a line: %s", method, path, problem.Detail)
		}
		return resp.StatusCode, problem.Detail
	}
	return resp.StatusCode, string(all)
}

// submit submits a task as a user of the cluster and returns its number.
func (g *remoteRig) submit(user string, s api.Submit) string {
	g.t.Helper()
	status, text := g.ask(user, "POST", "/v1/tasks", s)
	var got api.Submitted
	if status != 200 || json.Unmarshal([]byte(text), &got) != nil {
		g.t.Fatalf("%d %s", status, text)
	}
	return model.TaskID(got.ID).String()
}

// filled returns the method and the path of a rule, with the parameters filled in.
func filled(pattern, task string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, strings.NewReplacer("{task}", task, "{group}", "anns", "{suite}", "x", "{helper}", "y", "{id}", "1").Replace(path)
}

// TestRemoteToken checks that a request is refused with a message of one line if it has no
// token or an unknown one, or if the cluster does not answer. Running tasks continue.
func TestRemoteToken(t *testing.T) {
	long(t)
	g := newRemoteRig(t)
	g.script("train", untilStopped)
	id := g.submit("ann", api.Submit{Image: "train", Namespace: "a"})
	g.running(id)
	for pattern, rule := range routes {
		method, path := filled(pattern, id)
		if rule.Anybody {
			if status, text := g.ask("", method, path, nil); status != 200 {
				t.Errorf("%s: %d %s", pattern, status, text)
			}
			continue
		}
		if status, text := g.ask("", method, path, nil); status != 401 || !strings.Contains(text, "no token") {
			t.Errorf("%s without a token: %d %s", pattern, status, text)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", g.url+"/v1/tasks", nil)
	req.Header.Set("Authorization", "Bearer stolen")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a token that is nobody's: %s", resp.Status)
	}
	g.engine.silent = true
	g.forget()
	if status, text := g.ask("ann", "POST", "/v1/tasks/"+id+"/stop", api.StopRequest{}); status != 503 || !strings.Contains(text, "does not say who you are") {
		t.Errorf("a cluster that does not answer: %d %s", status, text)
	}
	g.engine.silent = false
	if status, text := g.ask("ann", "GET", "/v1/tasks/"+id, nil); status != 200 || !strings.Contains(text, `"running"`) {
		t.Errorf("afterwards: %d %s", status, text)
	}
}

// TestRemoteStranger: a user without rights in another's namespace can do nothing there:
// none of the requests about a task or a group succeeds, or reveals that it exists.
func TestRemoteStranger(t *testing.T) {
	long(t)
	g := newRemoteRig(t)
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		p.Out("s3cret-output")
		return untilStopped(ctx, p)
	})
	status, text := g.ask("ann", "POST", "/v1/submissions", api.Submission{Group: "anns", Tasks: []api.Submit{
		{Image: "train", Name: "s3cret-name", Namespace: "a", Env: []string{"KEY=s3cret-value"}, Mem: int64(units.GiB), Command: []string{"s3cret-command"}},
		{Image: "train", Namespace: "a", Mem: int64(units.GiB)},
	}})
	if status != 200 {
		t.Fatal(text)
	}
	g.running("1")
	whole, err := g.find.Find("1")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, rule := range routes {
		if rule.Pods == nil {
			continue
		}
		for _, ref := range []string{"1", "s3cret-name"} {
			method, path := filled(pattern, ref)
			_, missing := filled(pattern, "99")
			status, text := g.ask("bob", method, path, map[string]any{})
			if status != 404 {
				t.Errorf("%s: %d %s", pattern, status, text)
			}
			if strings.Contains(path, "{group}") {
				missing = strings.Replace(missing, "anns", "99", 1)
			}
			if like, other := g.ask("bob", method, missing, map[string]any{}); strings.Contains(pattern, "{task}") &&
				(like != 404 || strings.ReplaceAll(other, "99", ref) != text) {
				t.Errorf("%s tells that there is a task: %q, and %q where there is none", pattern, text, other)
			}
		}
	}
	for _, path := range []string{
		"/v1/tasks?all=true", "/v1/tasks?user=ann", "/v1/tasks?group=anns", "/v1/gpus", "/v1/used", "/v1/quotas", "/v1/timeline", "/v1/estimates/scores", "/v1/info",
	} {
		status, text := g.ask("bob", "GET", path, nil)
		if status != 200 || strings.Contains(text, "s3cret") || strings.Contains(text, "anns") || strings.Contains(text, `"ann"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := g.ask("ann", "GET", "/v1/tasks", nil); status != 200 || !strings.Contains(text, "s3cret-value") {
		t.Errorf("ann's own: %d %s", status, text)
	}
	for words, s := range map[string]api.Submit{
		"may not create pods in namespace a": {Image: "train", Namespace: "a"},
		"no task and no group s3cret-name":   {Image: "train", Namespace: "b", After: []api.Dependency{{Task: "s3cret-name"}}},
		"no task and no group anns":          {Image: "train", Namespace: "b", After: []api.Dependency{{Task: "anns"}}},
	} {
		if status, text := g.ask("bob", "POST", "/v1/tasks", s); status/100 != 4 || !strings.Contains(text, words) {
			t.Errorf("%+v: %d %s", s, status, text)
		}
		if status, text := g.ask("bob", "POST", "/v1/submissions/preview", api.Submission{Tasks: []api.Submit{s}}); status/100 != 4 || !strings.Contains(text, words) {
			t.Errorf("preview of %+v: %d %s", s, status, text)
		}
	}
	now, err := g.find.Find("1")
	if err != nil || now.Task.Phase != whole.Task.Phase || len(now.Task.Attempts) != 1 || now.Name != "s3cret-name" {
		t.Errorf("the task has changed: %+v, %v", now.Task, err)
	}
}

// TestRemoteStreams: a stream of all tasks leaves out tasks that its reader may not know
// of.
func TestRemoteStreams(t *testing.T) {
	g := newRemoteRig(t)
	g.script("train", untilStopped)
	g.running(g.submit("ann", api.Submit{Image: "train", Namespace: "a", Name: "s3cret-1"}))
	for _, path := range []string{"/v1/events", "/v1/live/events"} {
		ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
		req, _ := http.NewRequestWithContext(ctx, "GET", g.url+path, nil)
		req.Header.Set("Authorization", "Bearer token-of-bob")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(path, err)
		}
		g.submit("ann", api.Submit{Image: "train", Namespace: "a", Name: "s3cret" + strings.ReplaceAll(path, "/", "-")})
		g.submit("bob", api.Submit{Image: "train", Namespace: "b", Name: "mine" + strings.ReplaceAll(path, "/", "-")})
		got := ""
		for buf := make([]byte, 64<<10); !strings.Contains(got, "mine-"); {
			n, err := resp.Body.Read(buf)
			if got += string(buf[:n]); err != nil {
				t.Fatal(path, err)
			}
		}
		if strings.Contains(got, "s3cret") {
			t.Errorf("%s: %s", path, got)
		}
		cancel()
		resp.Body.Close()
	}
}

// TestRemoteRights: each request needs its right in the namespace, and carma's own rule: users
// who may see a namespace's pods do not see environments, and only the owner may read the
// output and stop a task.
func TestRemoteRights(t *testing.T) {
	long(t)
	g := newRemoteRig(t)
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		p.Out("s3cret-output")
		return untilStopped(ctx, p)
	})
	id := g.submit("ann", api.Submit{Image: "train", Namespace: "a", Env: []string{"KEY=s3cret-value"}})
	g.running(id)
	g.engine.rights["carol"] = []string{"get pods a"}
	if status, text := g.ask("carol", "GET", "/v1/tasks/"+id, nil); status != 200 || strings.Contains(text, "s3cret") || !strings.Contains(text, "KEY=***") {
		t.Errorf("who may get pods: %d %s", status, text)
	}
	for pattern, rule := range routes {
		if rule.Pods == nil || *rule.Pods == access.GetPods || !strings.Contains(pattern, "{task}") {
			continue
		}
		method, path := filled(pattern, id)
		body := map[string]any{}
		if strings.HasSuffix(path, "/exec") {
			body["command"] = []string{"sh"}
		}
		if status, text := g.ask("carol", method, path, body); status != 403 || !strings.Contains(text, "you may not "+rule.Pods.Verb+" pods") {
			t.Errorf("%s without its right: %d %s", pattern, status, text)
		}
		g.engine.rights["carol"] = allRights("a")
		g.forget()
		if status, text := g.ask("carol", method, path, body); status != 403 || !strings.Contains(text, "ann") {
			t.Errorf("%s with its right, of another's task: %d %s", pattern, status, text)
		}
		g.engine.rights["carol"] = []string{"get pods a"}
		g.forget()
	}
	g.engine.rights["ann"] = nil
	g.forget()
	if status, text := g.ask("ann", "POST", "/v1/tasks/"+id+"/stop", api.StopRequest{}); status != 404 {
		t.Errorf("an owner who has lost their rights: %d %s", status, text)
	}
	g.engine.rights["olga"] = allRights("a") // an administrator by her group
	if status, text := g.ask("olga", "GET", "/v1/tasks/"+id, nil); status != 200 || !strings.Contains(text, "s3cret-value") {
		t.Errorf("an administrator with rights there: %d %s", status, text)
	}
	if status, text := g.ask("root-of-all", "POST", "/v1/tasks/"+id+"/stop", api.StopRequest{}); status != 404 {
		t.Errorf("an administrator without rights there: %d %s", status, text)
	}
	if status, text := g.ask("olga", "POST", "/v1/tasks/"+id+"/stop", api.StopRequest{}); status != 200 {
		t.Errorf("an administrator stops it: %d %s", status, text)
	}
	g.finished(id)
}

// TestRemoteAdmins: admin requests are for the admins named by the daemon, not for a cluster
// group that has the same name as the machine's admin group.
func TestRemoteAdmins(t *testing.T) {
	g := newRemoteRig(t)
	for pattern, rule := range routes {
		method, path := filled(pattern, "1")
		if rule.Never != "" {
			if status, text := g.ask("root-of-all", method, path, map[string]any{}); status != 403 || !strings.Contains(text, "not offered over TLS") {
				t.Errorf("%s: %d %s", pattern, status, text)
			}
		}
		if rule.Never != "" || len(rule.Acts) == 0 || !rule.Acts[0].OnServer() || (rights.Policy{}).MayServer(rule.Acts[0], rights.Caller{UID: rights.FirstClusterUser}) {
			continue
		}
		if status, text := g.ask("bob", method, path, map[string]any{}); status != 403 || !strings.Contains(text, "kubernetes-admins") {
			t.Errorf("%s as a user: %d %s", pattern, status, text)
		}
	}
	if status, text := g.ask("olga", "POST", "/v1/launching", api.CloseRequest{}); status != 200 {
		t.Errorf("an administrator pauses: %d %s", status, text)
	}
	for _, path := range []string{"/", "/metrics", "/openapi.json", "/v2/tasks", "/v1/tasks/1/secrets"} {
		if status, text := g.ask("root-of-all", "GET", path, nil); status != 403 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestPlacing checks the namespace and user of a task, and the options that only the machine's
// users may set.
func TestPlacing(t *testing.T) {
	g := newRemoteRig(t)
	g.engine.serves = []string{"carma", "a", "c"}
	g.engine.rights["ann"] = append(allRights("a"), "create pods c")
	g.script("train", printing(0))
	user := func(name, home string) request.Caller {
		return request.SubjectCaller(containers.Subject{Name: name}, home)
	}
	for _, row := range []struct {
		who    request.Caller
		s      api.Submit
		status int
		words  string
	}{
		{user("ann", ""), api.Submit{}, 422, "no namespace: name one with --namespace"},
		{user("ann", "a"), api.Submit{Namespace: "A b"}, 422, "is not the name of a namespace"},
		{user("ann", "a"), api.Submit{ServiceAccount: "-x"}, 422, "is not the name of a service account"},
		{user("ann", "a"), api.Submit{Namespace: "b"}, 422, "kubernetes-namespaces"},
		{user("ann", "c"), api.Submit{}, 403, "you may not create resourceclaims.resource.k8s.io in namespace c (kubectl auth can-i create resourceclaims.resource.k8s.io -n c); you are ann"},
		{user("ann", "a"), api.Submit{Mounts: []api.Mount{{Source: "/etc", Target: "/x"}}}, 422, "-v: folders of the daemon's machine"},
		{user("ann", "a"), api.Submit{Account: "physics"}, 422, "--account: unix groups"},
		{user("ann", "a"), api.Submit{ContainerOptions: api.ContainerOptions{Groups: []string{"0"}}}, 422, "--group-add"},
		{user("ann", "a"), api.Submit{User: "root"}, 422, "a user is a number"},
		{user("ann", "a"), api.Submit{Image: "-", Host: true}, 422, "--conda, --venv, --host"},
		{ann, api.Submit{Namespace: "a"}, 403, "users of the daemon's machine run their tasks in its namespace carma"},
		{ann, api.Submit{ServiceAccount: "trainer"}, 403, "without an account"},
	} {
		if row.s.Image == "" {
			row.s.Image = "train"
		} else if row.s.Image == "-" {
			row.s.Image = ""
		}
		g.refusedAs(row.who, row.s, row.status, row.words)
	}
	for _, row := range []struct {
		who              request.Caller
		s                api.Submit
		namespace, asked string
	}{
		{user("ann", "a"), api.Submit{User: "1000:1000", ServiceAccount: "trainer"}, "a", "1000:1000"},
		{user("ann", "b"), api.Submit{Namespace: "a"}, "a", ""},
		{request.Caller{Name: "root"}, api.Submit{Namespace: "c"}, "c", ""},
		{ann, api.Submit{}, "carma", "20001:20001"},
	} {
		row.s.Image = "train"
		id := g.runAs(row.who, row.s)
		g.finished(id)
		g.engine.mu.Lock()
		spec := g.engine.specs[len(g.engine.specs)-1]
		g.engine.mu.Unlock()
		if spec.Namespace != row.namespace || spec.Account != row.s.ServiceAccount || spec.User != row.asked {
			t.Errorf("%s: in %q as %q, account %q; want %+v", row.who.Name, spec.Namespace, spec.User, spec.Account, row)
		}
		if rec, err := g.find.Find(id); err != nil || row.who.Subject != nil && rec.Submit.Account != row.namespace {
			t.Errorf("its use counts for %q, %v", rec.Submit.Account, err)
		}
	}
	plain := newRig(t)
	plain.script("train", printing(0))
	plain.refusedAs(ann, api.Submit{Image: "train", Namespace: "a"}, 422, "which has no namespaces")
	plain.refusedAs(ann, api.Submit{Image: "train", ServiceAccount: "a"}, 422, "not pods")
}

// TestNamespaceKept: a task's namespace and account are in the journal, so that the
// next daemon's attempt is there too.
func TestNamespaceKept(t *testing.T) {
	g := newRemoteRig(t)
	release := make(chan struct{})
	g.script("train", func(ctx context.Context, _ *containerstest.Process) int {
		select {
		case <-release:
			return 0
		case <-ctx.Done():
			return 143
		}
	})
	first := g.submit("ann", api.Submit{Image: "train", Namespace: "a", ServiceAccount: "trainer", Exclusive: true, GPUs: 2})
	g.running(first)
	second := g.submit("ann", api.Submit{Image: "train", Namespace: "a", ServiceAccount: "trainer"})
	g.restart()
	if status, text := g.ask("ann", "GET", "/v1/tasks/"+second, nil); status != 200 || !strings.Contains(text, `"namespace":"a"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := g.ask("bob", "GET", "/v1/tasks/"+second, nil); status != 404 {
		t.Errorf("for bob: %d", status)
	}
	close(release)
	g.finished(first)
	g.finished(second)
	g.engine.mu.Lock()
	defer g.engine.mu.Unlock()
	if last := g.engine.specs[len(g.engine.specs)-1]; len(g.engine.specs) != 2 || last.Namespace != "a" || last.Account != "trainer" || last.User != "" {
		t.Errorf("the attempt after the restart: %+v", last)
	}
}

// TestSubjects checks that users of a cluster differ from users of the machine and from each
// other.
func TestSubjects(t *testing.T) {
	a, b := request.SubjectUID("ann"), request.SubjectUID("bob")
	if a == b || !rights.OfCluster(a) || !rights.OfCluster(b) || rights.OfCluster(1<<31) || a != request.SubjectUID("ann") {
		t.Errorf("%d, %d", a, b)
	}
	if ownsTask(request.Caller{UID: a, Name: "mallory"}, &record.Record{UID: a, User: "ann"}) {
		t.Error("a number alone is no proof")
	}
	sa := request.SubjectCaller(containers.Subject{Name: "system:serviceaccount:lab:trainer"}, "")
	if sa.Namespace != "lab" {
		t.Errorf("a service account's namespace: %q", sa.Namespace)
	}
}
