package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/request"
)

// audited returns the records of the audit log that a caller sees, one per line.
func (g *rig) audited(who request.Caller, query string) string {
	g.t.Helper()
	status, text := g.ask(who, http.MethodGet, "/v1/audit?"+query, "")
	var found api.Audit
	if err := json.Unmarshal([]byte(text), &found); err != nil || status != 200 {
		g.t.Fatalf("%d %s", status, text)
	}
	var b strings.Builder
	for _, r := range found.Records {
		if r.At.IsZero() || found.Now.Before(r.At) {
			g.t.Errorf("recorded at %s", r.At)
		}
		verdict := "refused"
		if r.Allowed {
			verdict = "allowed"
		}
		fmt.Fprintf(&b, "%s %s task=%d object=%q owner=%s detail=%q %s\n", r.Who, r.Action, r.Task, r.Object, r.Owner, r.Detail, verdict)
	}
	return b.String()
}

// TestAudit checks that actions of administrators on others' tasks and on the server are
// recorded, exactly once, whether allowed or refused, and survive a restart; that actions of
// ordinary users and actions on one's own tasks are not recorded; and which records each user
// can read.
func TestAudit(t *testing.T) {
	long(t)
	g := newRig(t, func(g *rig) { g.opt.AdminGroup = "lab" })
	g.script("train", untilStopped)
	run := func(who request.Caller) string {
		id := g.runAs(who, api.Submit{Image: "train", Mem: int64(units.GiB), HostReserve: int64(units.MiB), Env: []string{"KEY=s3cret-env"}})
		g.running(id)
		return id
	}
	anns, roots, opers := run(ann), run(rootUser), run(oper)
	ask := func(who request.Caller, method, path, body string, want int) {
		t.Helper()
		if status, text := g.ask(who, method, path, body); status != want {
			t.Errorf("%s %s as %s: %d %s", method, path, who.Name, status, text)
		}
	}
	command := `{"command":["/bin/sh","-c","curl -H s3cret-argument"]}`
	ask(bob, "POST", "/v1/tasks/"+anns+"/stop", "{}", 403)
	ask(bob, "POST", "/v1/drain", "", 403)
	ask(oper, "POST", "/v1/tasks/"+opers+"/move", "{}", 409)
	ask(oper, "GET", "/v1/tasks", "", 200)
	ask(oper, "GET", "/v1/tasks/"+anns+"/history", "", 200)
	ask(ann, "GET", "/v1/tasks/"+anns, "", 200)
	if got := g.audited(rootUser, ""); got != "" {
		t.Errorf("recorded, though no act of an administrator:\n%s", got)
	}
	ask(oper, "POST", "/v1/tasks/"+roots+"/exec", command, 403)
	ask(oper, "POST", "/v1/tasks/"+anns+"/exec", command, 426)
	for range 3 {
		ask(oper, "GET", "/v1/tasks/"+anns, "", 200)
		ask(oper, "GET", "/v1/tasks/"+roots, "", 200)
	}
	ask(oper, "PATCH", "/v1/tasks/"+anns, `{"priority":"high"}`, 200)
	ask(oper, "POST", "/v1/launching", `{"why":"power"}`, 200)
	ask(oper, "POST", "/v1/prove", `{}`, 422)
	ask(rootUser, "POST", "/v1/tasks/"+anns+"/stop", `{"reason":"too long"}`, 200)
	want := strings.NewReplacer("ANNS", anns, "ROOTS", roots).Replace(`oper exec task=ROOTS object="" owner=root detail="/bin/sh" refused
oper exec task=ANNS object="" owner=ann detail="/bin/sh" allowed
oper environment task=ANNS object="" owner=ann detail="" allowed
oper update task=ANNS object="" owner=ann detail="{\"priority\":\"high\"}" allowed
oper pause task=0 object="" owner= detail="power" allowed
root stop task=ANNS object="" owner=ann detail="too long" allowed
`)
	g.restart()
	if got := g.audited(rootUser, ""); got != want {
		t.Errorf("recorded\n%s, want\n%s", got, want)
	}
	lines := strings.SplitAfter(want, "\n")
	for _, c := range []struct {
		who   request.Caller
		query string
		want  []int
	}{
		{ann, "", []int{1, 2, 3, 5}}, {oper, "", []int{0, 1, 2, 3, 4}}, {bob, "", nil},
		{rootUser, "user=root", []int{0, 5}}, {rootUser, "mine=true", []int{5}}, {rootUser, "task=" + roots, []int{0}}, {rootUser, "limit=2", []int{4, 5}},
		{rootUser, "since=2999-01-01T00:00:00Z", nil}, {rootUser, "until=2000-01-01T00:00:00Z", nil},
	} {
		text := ""
		for _, i := range c.want {
			text += lines[i]
		}
		if got := g.audited(c.who, c.query); got != text {
			t.Errorf("%s reads with %q\n%s, want\n%s", c.who.Name, c.query, got, text)
		}
	}
	log, err := os.ReadFile(filepath.Join(g.dir, "audit.jsonl"))
	if err != nil || bytes.Contains(log, []byte("s3cret")) {
		t.Errorf("%s %v", log, err)
	}
	if status, _ := g.ask(ann, http.MethodGet, "/v1/audit?limit=100001", ""); status != 422 {
		t.Errorf("too many records: %d", status)
	}
}

// TestAuditUnwritable checks that an administrator can stop a task when no record can be
// written, and that the daemon's log contains the action.
func TestAuditUnwritable(t *testing.T) {
	var log bytes.Buffer
	g := newRig(t, func(g *rig) { g.opt.AdminGroup, g.log = "lab", &log })
	g.script("train", untilStopped)
	id := g.runAs(ann, api.Submit{Image: "train", Mem: int64(units.GiB)})
	if err := os.Mkdir(filepath.Join(g.dir, "audit.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if status, text := g.ask(oper, http.MethodPost, "/v1/tasks/"+id+"/stop", "{}"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	g.finished(id)
	g.stop()
	for _, word := range []string{`"level":"error"`, `"user":"oper"`, `"action":"stop"`, `"owner":"ann"`, "could not be recorded"} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("no %s in %s", word, log.String())
		}
	}
}

// TestExecIsLoggedWithoutArguments checks that the daemon's log contains the user, the task and
// the program of an exec, but no argument.
func TestExecIsLoggedWithoutArguments(t *testing.T) {
	var log bytes.Buffer
	g := newRig(t, func(g *rig) { g.log = &log })
	g.script("train", untilStopped)
	id := g.runAs(ann, api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.running(id)
	g.ask(ann, http.MethodPost, "/v1/tasks/"+id+"/exec", `{"command":["mysql","-ps3cret"],"env":["KEY=s3cret"]}`)
	g.stop()
	if text := log.String(); !strings.Contains(text, `"user":"ann","program":"mysql"`) || !strings.Contains(text, `"task":`+id) || strings.Contains(text, "s3cret") {
		t.Error(text)
	}
}
