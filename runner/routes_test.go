package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/endpoint"
	"carma/runner/query"
	"carma/runner/request"
	"carma/runner/rights"
)

// account is the user that the daemon of rightsRig runs as.
var account = request.Caller{UID: 20500, GID: 20500, Name: "carma"}

// routes are the rules of all requests of the API, by method and path.
var routes = func() map[string]endpoint.Rule {
	all := map[string]endpoint.Rule{}
	for _, e := range new(Runner).endpoints() {
		all[e.Pattern] = e.Rule
	}
	return all
}()

// rightsRig is a daemon of account's with a task of each kind of owner, private and open.
// All callers have all rights in the cluster, so that only carma's own table refuses.
type rightsRig struct {
	*remoteRig
	callers []request.Caller
	tasks   []rightsTask
}

type rightsTask struct {
	ref   string
	owner request.Caller
	open  bool
}

func newRightsRig(t *testing.T) *rightsRig {
	g := &rightsRig{remoteRig: newRemoteRig(t, func(g *rig) { g.opt.AdminGroup, g.opt.Account = "lab", account.UID })}
	cluster := func(name string) request.Caller {
		g.engine.rights[name] = slices.Concat(allRights("a"), allRights("carma"))
		return request.SubjectCaller(containers.Subject{Name: name, Groups: []string{"lab"}}, "a")
	}
	cara := cluster("cara")
	g.callers = []request.Caller{ann, bob, cara, cluster("dora"), oper, cluster("root-of-all"), account, rootUser}
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		for i := range 40 {
			p.Out("Epoch 1/10: step %d/400 loss s3cret-output", i+1)
		}
		return untilStopped(ctx, p)
	})
	for i, owner := range []request.Caller{ann, cara, rootUser, account} {
		for _, visibility := range []string{access.VisibilityPrivate, access.VisibilityOpen} {
			s := api.Submit{Image: "train", Mem: int64(units.GiB), HostReserve: int64(units.MiB), ContainerOptions: api.ContainerOptions{TTY: true}, Env: []string{"KEY=s3cret-env"}, Visibility: visibility}
			if owner.Subject != nil {
				s.Namespace = "a"
			}
			sub, err := g.admission.SubmitAll(g.ctx(), owner, api.Submission{Group: fmt.Sprintf("group-%d-%s", i, visibility), Tasks: []api.Submit{s}})
			if err != nil {
				t.Fatal(err)
			}
			ref := model.TaskID(sub.Tasks[0].ID).String()
			g.running(ref)
			g.tasks = append(g.tasks, rightsTask{ref, owner, visibility == access.VisibilityOpen})
		}
	}
	return g
}

// may asks the table.
func (g *rightsRig) mayTo(a rights.Action, who request.Caller, task rightsTask) bool {
	return g.authz.Policy().May(a, g.authz.Subject(who), rights.Owner{UID: task.owner.UID, Name: task.owner.Name, Open: task.open})
}

// lastRoutes lists the requests that change a task's state, in the order in which the test
// makes them.
var lastRoutes = []string{
	"DELETE /v1/tasks/{task}", "POST /v1/tasks/{task}/requeue", "POST /v1/tasks/{task}/stop", "POST /v1/groups/{group}/stop",
}

// bodies are the requests that need one.
var bodies = map[string]string{
	"POST /v1/tasks/{task}/exec": `{"command":["sh","-c","s3cret-argument"]}`,
	"POST /v1/tasks/{task}/pin":  `{"any":true}`,
}

// TestRoutesAndRights makes each request about a task as each caller, to a task of each
// kind of owner, private and open, and compares the refusals with the table.
func TestRoutesAndRights(t *testing.T) {
	long(t)
	g := newRightsRig(t)
	ofTasks := slices.DeleteFunc(slices.Sorted(maps.Keys(routes)), func(pattern string) bool {
		return !strings.Contains(pattern, "{task}") && !strings.Contains(pattern, "{group}") || slices.Contains(lastRoutes, pattern)
	})
	asked := 0
	for _, pattern := range append(ofTasks, lastRoutes...) {
		for i, task := range g.tasks {
			rec, err := g.find.Find(task.ref)
			if err != nil {
				t.Fatal(err)
			}
			method, path, _ := strings.Cut(pattern, " ")
			path = strings.NewReplacer("{task}", task.ref, "{group}", rec.Group).Replace(path)
			body := bodies[pattern]
			if body == "" && method != http.MethodGet {
				body = "{}"
			}
			for _, who := range g.callers {
				status, text := g.rig.ask(who, method, path, body)
				a := routes[pattern].Acts[0]
				if want := g.mayTo(a, who, task); want != (status != 403) || !want && !strings.Contains(text, task.owner.Name) {
					t.Errorf("%s as %s to %s's (open: %v): %d %s", pattern, who.Name, task.owner.Name, task.open, status, text)
				}
				asked++
				if status == 404 || status >= 500 {
					t.Errorf("%s as %s: %d %s", pattern, who.Name, status, text)
				}
			}
			if i == 0 && strings.HasSuffix(pattern, "/stop") {
				g.finished(task.ref)
			}
		}
	}
	t.Logf("%d requests", asked)
}

// TestAnswersAndRights compares the private parts of answers with the table: the
// environment, and the progress from the output.
func TestAnswersAndRights(t *testing.T) {
	long(t)
	g := newRightsRig(t)
	for _, task := range g.tasks {
		g.untilAs(task.owner, task.ref, func(v *api.Task) bool { return v.Progress != nil && v.Progress.Unit != "" })
	}
	asked := 0
	check := func(a rights.Action, who request.Caller, task rightsTask, what string, shown bool) {
		t.Helper()
		asked++
		if want := g.mayTo(a, who, task); shown != want {
			t.Errorf("%s as %s of %s's (open: %v): shown %v, want %v", what, who.Name, task.owner.Name, task.open, shown, want)
		}
	}
	progress := func(v *api.Task) bool {
		p := v.Progress
		return p.Unit != "" || p.Done != 0 || p.Total != 0 || p.Epoch != 0 || p.Share != 0 || p.Rate != 0 || p.ETABasis == "output" || p.Source != query.SourcePrivate
	}
	for _, who := range g.callers {
		for _, task := range g.tasks {
			get := func(path string) (text string) {
				_, text = g.rig.ask(who, http.MethodGet, path, "")
				return text
			}
			var one api.Task
			text := get("/v1/tasks/" + task.ref)
			if err := json.Unmarshal([]byte(text), &one); err != nil {
				t.Fatal(err)
			}
			check(rights.Environment, who, task, "inspect", strings.Contains(text, "s3cret-env"))
			check(rights.Environment, who, task, "hidden", !one.EnvHidden)
			check(rights.Progress, who, task, "inspect", progress(&one))
			rec, _ := g.find.Find(task.ref)
			for _, path := range []string{"/v1/tasks?all=true&group=" + rec.Group, "/v1/groups/" + rec.Group} {
				text = get(path)
				var list []api.Task
				if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 1 {
					t.Fatal(path, text, err)
				}
				check(rights.ListEnvironment, who, task, path, strings.Contains(text, "s3cret-env"))
				check(rights.Progress, who, task, path, progress(&list[0]))
			}
			text = get("/v1/tasks/" + task.ref + "/events")
			check(rights.ListEnvironment, who, task, "events", strings.Contains(text, "s3cret-env"))
			check(rights.Progress, who, task, "events", strings.Contains(text, `"epoch"`))
			text = get("/v1/tasks/" + task.ref + "/logs")
			check(rights.Output, who, task, "logs", strings.Contains(text, "s3cret-output"))
		}
		_, text := g.rig.ask(who, http.MethodGet, "/v1/live/events", "")
		rows := liveRows(t, text)
		for _, task := range g.tasks {
			row, there := rows[task.ref]
			if !there {
				t.Fatalf("task %s is not in %s", task.ref, text)
			}
			check(rights.Progress, who, task, "live", row.Share != 0)
		}
	}
	t.Logf("%d looks", asked)
	_, text := g.rig.ask(bob, http.MethodGet, "/metrics", "")
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "carma_task_progress") {
			continue
		}
		for _, task := range g.tasks {
			if !task.open && strings.Contains(line, `task="`+task.ref+`"`) {
				t.Errorf("metrics: %s", line)
			}
		}
	}
	if !strings.Contains(text, "carma_task_progress") {
		t.Errorf("open tasks have no progress:\n%s", text)
	}
}

// untilAs waits for a state of a task as its owner sees it.
func (g *rightsRig) untilAs(who request.Caller, ref string, ok func(*api.Task) bool) {
	g.t.Helper()
	for ctx := g.as(who); ctx.Err() == nil; runtime.Gosched() {
		if v, err := g.query.Task(ctx, ref); err == nil && ok(&v) {
			return
		}
	}
	g.t.Fatalf("gave up waiting for task %s", ref)
}

// liveRows returns the tasks of the first event of a live stream.
func liveRows(t *testing.T, text string) map[string]api.LiveTask {
	t.Helper()
	_, data, _ := strings.Cut(text, "data: ")
	data, _, _ = strings.Cut(data, "\n")
	var event struct{ Tasks []api.LiveTask }
	if err := json.Unmarshal([]byte(data), &event); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	rows := map[string]api.LiveTask{}
	for _, row := range event.Tasks {
		rows[model.TaskID(row.ID).String()] = row
	}
	return rows
}

// TestServerRoutes makes each request about the server as each caller, and compares the
// refusals with the table.
func TestServerRoutes(t *testing.T) {
	long(t)
	g := newRightsRig(t)
	asked := 0
	patterns := slices.DeleteFunc(slices.Sorted(maps.Keys(routes)), func(pattern string) bool {
		rule := routes[pattern]
		return len(rule.Acts) == 0 || !rule.Acts[0].OnServer() || rule.Acts[0] == rights.Drain
	})
	for _, pattern := range append(patterns, "POST /v1/drain") { // the last request ends the daemon
		method, path := filled(pattern, "1")
		for _, who := range g.callers {
			want := g.authz.MayServer(routes[pattern].Acts[0], who)
			status, text := g.rig.ask(who, method, path, "{}")
			if want != (status != 403) {
				t.Errorf("%s as %s: %d %s", pattern, who.Name, status, text)
			}
			asked++
		}
	}
	t.Logf("%d requests", asked)
}

// TestRoutes checks that there is a row in routes for each request of the API and for
// nothing else, and that requests about a task, a group or a suite ask for a right to one.
func TestRoutes(t *testing.T) {
	text, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(routes)
	for path, methods := range document.Paths {
		for method := range methods {
			pattern := strings.ToUpper(method) + " " + path
			rule, is := routes[pattern]
			if delete(left, pattern); !is {
				t.Errorf("%s: who may do that? Write a row into routes", pattern)
				continue
			}
			if len(rule.Acts) == 0 != rule.Anybody {
				t.Errorf("%s asks for no right", pattern)
			}
			about := strings.Contains(path, "{task}") || strings.Contains(path, "{group}") || strings.Contains(path, "{suite}") && method != "put"
			for i, a := range rule.Acts {
				if !a.Known() {
					t.Errorf("%s: the table of rights has no action %s", pattern, a)
				}
				if i == 0 && about == a.OnServer() {
					t.Errorf("%s asks first for %s", pattern, a)
				}
			}
			if (strings.Contains(path, "{task}") || strings.Contains(path, "{group}")) != (rule.Pods != nil) {
				t.Errorf("%s: which right to pods does it need?", pattern)
			}
		}
	}
	for pattern := range left {
		t.Errorf("%s: there is no such request", pattern)
	}
}
