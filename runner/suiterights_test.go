package runner

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/runner/helpers"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/suites"
)

// keptSuites is a store with suites.
type keptSuites map[string][]byte

func (k keptSuites) Put(key string, value []byte) error { k[key] = value; return nil }
func (k keptSuites) Get(key string) ([]byte, error)     { return k[key], nil }
func (k keptSuites) Drop(key string) error              { delete(k, key); return nil }

// keep stores a suite of an owner's, as the manager of helpers finds it at its start.
func (k keptSuites) keep(t *testing.T, owner request.Caller, name string) {
	t.Helper()
	var names []string
	_ = json.Unmarshal(k["suites"], &names)
	key := strconv.Itoa(owner.UID) + "/" + name
	body, err := json.Marshal(map[string]any{"owner": suites.OwnerOf(owner), "name": name})
	if err != nil {
		t.Fatal(err)
	}
	k["suites"], _ = json.Marshal(append(names, key))
	k["suite/"+key] = body
}

// TestSuiteRights asks for each action on suites as each caller, for suites of each kind of
// owner that run and that have ended, and compares the answers with the table. A caller who is
// not an administrator does not learn that another user's suite exists.
func TestSuiteRights(t *testing.T) {
	long(t)
	g := newRig(t, func(g *rig) { g.opt.AdminGroup, g.opt.Account = "lab", account.UID })
	owners := []request.Caller{ann, rootUser, account}
	for _, o := range owners {
		nothing := func(time.Time, containers.LogSink) error { return nil }
		if err := g.suites.Output().Keep(helpers.Owner{UID: o.UID, Name: o.Name}, "down-"+o.Name, time.Time{}, "down-x-1", nothing); err != nil {
			t.Fatal(err)
		}
	}
	g.stop()
	deps := g.Runner.Deps
	deps.Journal = g.reopened()
	r, err := New(g.ctx(), g.opt, deps) // it does not run, so that nothing changes the suites
	if err != nil {
		t.Fatal(err)
	}
	r.endWork()
	g.Runner = r
	t.Cleanup(func() { _, _ = r.authz.Close(), r.Journal.Close() })
	store := keptSuites{}
	for _, o := range owners {
		store.keep(t, o, "up-"+o.Name)
	}
	if g.Runner.suites.Manager, err = helpers.New(helpers.Deps{Store: store, Driver: g.engine, Images: g.pull}); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, o := range owners {
		owner := rights.Owner{UID: o.UID, Name: o.Name}
		for _, who := range []request.Caller{ann, bob, oper, account, rootUser} {
			check := func(a rights.Action, what string, status int, text string) {
				t.Helper()
				asked++
				admin := g.authz.Administers(who)
				switch may := g.authz.Policy().May(a, g.authz.Subject(who), owner); {
				case may && (status == 403 || status == 404 && !strings.Contains(text, "has no helper")),
					!may && admin && (status != 403 || !strings.Contains(text, " of "+o.Name+": only ")),
					!may && !admin && status != 404:
					t.Errorf("%s as %s of %s's: %d %s", what, who.Name, o.Name, status, text)
				}
			}
			for _, row := range []struct {
				a            rights.Action
				method, path string
			}{
				{rights.SeeSuite, http.MethodGet, "/v1/suites/up-" + o.Name},
				{rights.HelperOutput, http.MethodGet, "/v1/suites/up-" + o.Name + "/helpers/db-1/logs"},
				{rights.SeeSuite, http.MethodGet, "/v1/suites/down-" + o.Name + "?ended=true"},
				{rights.HelperOutput, http.MethodGet, "/v1/suites/down-" + o.Name + "/helpers/down-x-1/logs"},
			} {
				status, text := g.ask(who, row.method, row.path, "")
				check(row.a, row.path, status, text)
			}
			if admin := g.authz.Administers(who); admin && !g.authz.Policy().May(rights.DropVolumes, g.authz.Subject(who), owner) {
				status, text := g.ask(who, http.MethodDelete, "/v1/suites/up-"+o.Name+"?volumes=true", "")
				check(rights.DropVolumes, "volumes", status, text)
			}
			for _, a := range []rights.Action{rights.SeeSuite, rights.DropSuite, rights.DropVolumes, rights.HelperOutput} {
				status, text := 200, ""
				if _, err := g.suites.Owner(who, a, "up-"+o.Name); err != nil {
					status, text = err.(*request.Error).Status, err.Error()
				}
				check(a, string(a), status, text)
			}
		}
	}
	t.Logf("%d questions", asked)
	if got := g.audited(rootUser, "user=oper"); !strings.Contains(got, `oper helper-output task=0 object="suite up-root" owner=root detail="" refused`) || !strings.Contains(got, `oper helper-output task=0 object="suite down-ann" owner=ann detail="" allowed`) {
		t.Error(got)
	}
}
