// Package terminals attaches callers to the terminals and the inputs of running tasks, and runs
// commands in their containers.
package terminals

import (
	"context"
	"slices"
	"strings"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/console"
	"carma/runner/engine"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"
)

const (
	// consoleWithin is the time that a request waits for the console of a running task,
	// because a daemon that has just started looks for the containers first.
	consoleWithin = 20 * time.Second
	// hangUpGrace is the time that a command has to end when its caller has left.
	hangUpGrace = 10 * time.Second
	// hangUpAtEnd bounds the time in which a stopping daemon ends commands.
	hangUpAtEnd = time.Second
)

// Config holds the parts that Terminals work with.
type Config struct {
	Find     *record.Finder
	Authz    *access.Authorizer
	Driver   containers.Driver
	Consoles *console.Registry
	// Stopping reports whether the daemon is stopping. Work ends when it stops.
	Stopping func() bool
	Work     context.Context
	// Upgrade takes over the connection of a request and has a func serve it.
	Upgrade func(serve func(context.Context, *api.Terminal)) *huma.StreamResponse
	Log     zerolog.Logger
}

// Terminals connects callers with the programs in containers.
type Terminals struct {
	find     *record.Finder
	authz    *access.Authorizer
	driver   containers.Driver
	consoles *console.Registry
	stopping func() bool
	work     context.Context
	upgrade  func(serve func(context.Context, *api.Terminal)) *huma.StreamResponse
	log      zerolog.Logger
}

// New returns the terminals of a daemon.
func New(c Config) *Terminals {
	return &Terminals{find: c.Find, authz: c.Authz, driver: c.Driver, consoles: c.Consoles, stopping: c.Stopping, work: c.Work, upgrade: c.Upgrade, log: c.Log}
}

// Attach connects the caller to the terminal, or the input, of a task.
func (t *Terminals) Attach(ctx context.Context, in *api.TaskPath) (*huma.StreamResponse, error) {
	c, _, err := t.inside(ctx, in.Ref, rights.Attach, "")
	if err != nil {
		return nil, err
	}
	if !c.Talks() {
		return nil, request.Errorf(409, "task %d has no terminal and no input: it was submitted without -t and -i; carma logs -f %d shows its output, carma exec -it %d sh opens a shell in it", c.Key().Task, c.Key().Task, c.Key().Task)
	}
	return t.upgrade(func(ctx context.Context, to *api.Terminal) { c.Serve(ctx, to, t.stopping) }), nil
}

// Exec runs a command in a task.
func (t *Terminals) Exec(ctx context.Context, in *api.OnTask[api.ExecRequest]) (*huma.StreamResponse, error) {
	if err := checkExec(&in.Body); err != nil {
		return nil, err
	}
	program := in.Body.Command[0] // its arguments may be secret
	c, driver, err := t.inside(ctx, in.Ref, rights.Exec, program)
	if err != nil {
		return nil, err
	}
	who, _ := request.CallerFrom(ctx)
	t.log.Info().Int64("task", int64(c.Key().Task)).Str("user", who.Name).Str("program", program).Msg("a command in a task")
	return t.upgrade(func(ctx context.Context, to *api.Terminal) { t.serveExec(ctx, driver, c, in.Body, to) }), nil
}

func checkExec(e *api.ExecRequest) error {
	switch {
	case len(e.Command) == 0 || e.Command[0] == "":
		return request.Errorf(422, "no command; write for example: carma exec -it TASK sh")
	case e.WorkDir != "" && e.WorkDir[0] != '/':
		return request.Errorf(422, "--workdir: %s is not absolute; it is a folder in the container", e.WorkDir)
	}
	for _, text := range slices.Concat(e.Command, e.Env, []string{e.WorkDir}) {
		if strings.ContainsRune(text, 0) {
			return request.Errorf(422, "a zero byte in %q", text)
		}
	}
	for _, kv := range e.Env {
		if key, _, ok := strings.Cut(kv, "="); !ok || key == "" {
			return request.Errorf(422, "--env: %q; write KEY=value", kv)
		}
	}
	return nil
}

// inside returns the running container of a task if the caller may enter it.
func (t *Terminals) inside(ctx context.Context, ref string, a rights.Action, detail string) (*console.Console, containers.Terminals, error) {
	rec, err := t.find.Find(ref)
	if err != nil {
		return nil, nil, err
	}
	who, err := request.KnownCaller(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := t.authz.Authorize(who, a, rec, detail); err != nil {
		return nil, nil, err
	}
	driver, can := engine.As[containers.Terminals](t.driver)
	if !can {
		return nil, nil, request.Errorf(422, "carma %s: the driver %s cannot connect with programs in containers", a, t.driver.Name())
	}
	at := rec.Task.Current()
	if rec.Task.Suspension != nil && rec.Task.StopReason.Code == "" {
		return nil, nil, request.Errorf(409, "task %d is %s: its programs stand still until %s", rec.ID(), rec.Task.Phase, record.UntilResumed(&rec.Task))
	}
	if phase := rec.Task.Phase; at == nil || phase != model.Running && phase != model.Stopping {
		why := "carma why " + rec.ID().String() + " tells more"
		return nil, nil, request.Errorf(409, "task %d does not run: it is %s; %s", rec.ID(), phase, why)
	}
	c := t.consoles.Wait(ctx, rec.ID(), at.N, consoleWithin)
	if c == nil {
		return nil, nil, request.Errorf(503, "task %d cannot be reached at the moment; try again", rec.ID())
	}
	return c, driver, nil
}
