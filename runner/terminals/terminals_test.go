package terminals

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/console"
	"carma/runner/loop/looptest"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"
)

// plain is a driver that cannot connect with programs.
type plain struct{ containers.Driver }

func (plain) Name() string { return "plain" }

// TestRefusals: what is wrong with a request to enter a task is said before its connection is
// taken over.
func TestRefusals(t *testing.T) {
	l := looptest.New(t)
	l.Submit(&record.Record{Name: "train", User: "ann", UID: 1001, Task: model.Task{Request: model.Request{ID: 1}}})
	authz := access.New(access.Config{
		Audit: audit.New(t.TempDir()), Driver: containerstest.NewFake(), Now: time.Now, Log: zerolog.Nop(),
		Settings: func() access.Settings { return access.Settings{} },
	})
	defer func() { _ = authz.Close() }()
	c := Config{
		Find: &record.Finder{Records: l.Records, Journal: l.Journal}, Authz: authz, Driver: containerstest.NewFake(), Consoles: console.New(),
		Upgrade: func(func(context.Context, *api.Terminal)) *huma.StreamResponse { t.Error("taken over"); return nil },
	}
	with := New(c)
	c.Driver = plain{}
	without := New(c)
	ann, bob := request.Caller{UID: 1001, Name: "ann"}, request.Caller{UID: 1002, Name: "bob"}
	for name, row := range map[string]struct {
		of     *Terminals
		who    request.Caller
		ref    string
		e      api.ExecRequest
		status int
		part   string
	}{
		"no terminals here": {without, ann, "1", api.ExecRequest{Command: []string{"ls"}}, 422, "cannot connect"},
		"no command":        {with, ann, "1", api.ExecRequest{}, 422, "no command"},
		"a relative path":   {with, ann, "1", api.ExecRequest{Command: []string{"ls"}, WorkDir: "x"}, 422, "not absolute"},
		"a zero byte":       {with, ann, "1", api.ExecRequest{Command: []string{"a\x00"}}, 422, "zero byte"},
		"a nameless value":  {with, ann, "1", api.ExecRequest{Command: []string{"ls"}, Env: []string{"=x"}}, 422, "KEY=value"},
		"no task":           {with, ann, "9", api.ExecRequest{Command: []string{"ls"}}, 404, "no task 9"},
		"another's task":    {with, bob, "1", api.ExecRequest{Command: []string{"ls"}}, 403, "you are bob"},
		"a task that waits": {with, ann, "1", api.ExecRequest{Command: []string{"ls"}}, 409, "does not run"},
	} {
		_, err := row.of.Exec(request.WithCaller(t.Context(), row.who), &api.OnTask[api.ExecRequest]{TaskPath: api.TaskPath{Ref: row.ref}, Body: row.e})
		refused, ok := errors.AsType[*request.Error](err)
		if !ok || refused.Status != row.status || !strings.Contains(refused.Text, row.part) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
