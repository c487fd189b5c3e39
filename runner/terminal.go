package runner

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/console"
	"carma/runner/engine"
	"carma/runner/request"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
)

const (
	// consoleWithin is the time that a request waits for the worker of a running task,
	// because a daemon that has just started looks for the containers first.
	consoleWithin = 20 * time.Second
	// hangUpGrace is the time that a command has to end when its caller has left.
	hangUpGrace = 10 * time.Second
	// hangUpAtEnd bounds the time in which a stopping daemon ends commands.
	hangUpAtEnd = time.Second
)

// attachTo connects the caller to the terminal, or the input, of a task.
func (r *Runner) attachTo(ctx context.Context, in *api.TaskPath) (*huma.StreamResponse, error) {
	c, _, err := r.inside(ctx, in.Ref, rights.Attach, "")
	if err != nil {
		return nil, err
	}
	if !c.Talks() {
		return nil, request.Errorf(409, "task %d has no terminal and no input: it was submitted without -t and -i; carma logs -f %d shows its output, carma exec -it %d sh opens a shell in it", c.Key().Task, c.Key().Task, c.Key().Task)
	}
	return r.upgrading(func(ctx context.Context, t *api.Terminal) { c.Serve(ctx, t, r.loop.Stopping) }), nil
}

// exec runs a command in a task.
func (r *Runner) exec(ctx context.Context, in *api.OnTask[api.ExecRequest]) (*huma.StreamResponse, error) {
	if err := checkExec(&in.Body); err != nil {
		return nil, err
	}
	program := in.Body.Command[0] // its arguments may be secret
	c, driver, err := r.inside(ctx, in.Ref, rights.Exec, program)
	if err != nil {
		return nil, err
	}
	who, _ := request.CallerFrom(ctx)
	r.Log.Info().Int64("task", int64(c.Key().Task)).Str("user", who.Name).Str("program", program).Msg("a command in a task")
	return r.upgrading(func(ctx context.Context, t *api.Terminal) { r.serveExec(ctx, driver, c, in.Body, t) }), nil
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
func (r *Runner) inside(ctx context.Context, ref string, a rights.Action, detail string) (*console.Console, containers.Terminals, error) {
	rec, err := r.find.Find(ref)
	if err != nil {
		return nil, nil, err
	}
	who, err := request.KnownCaller(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := r.authz.Authorize(who, a, rec, detail); err != nil {
		return nil, nil, err
	}
	driver, can := engine.As[containers.Terminals](r.Driver)
	if !can {
		return nil, nil, request.Errorf(422, "carma %s: the driver %s cannot connect with programs in containers", a, r.Driver.Name())
	}
	at := rec.Task.Current()
	if rec.Task.Suspension != nil && rec.Task.StopReason.Code == "" {
		return nil, nil, request.Errorf(409, "task %d is %s: its programs stand still until %s", rec.ID(), rec.Task.Phase, untilBack(&rec.Task))
	}
	if phase := rec.Task.Phase; at == nil || phase != model.Running && phase != model.Stopping {
		why := "carma why " + rec.ID().String() + " tells more"
		return nil, nil, request.Errorf(409, "task %d does not run: it is %s; %s", rec.ID(), phase, why)
	}
	c := r.consoles.Wait(ctx, rec.ID(), at.N, consoleWithin)
	if c == nil {
		return nil, nil, request.Errorf(503, "task %d cannot be reached at the moment; try again", rec.ID())
	}
	return c, driver, nil
}

// upgrading takes over the connection of a request, and closes it when serve
// returns or the daemon stops.
func (r *Runner) upgrading(serve func(context.Context, *api.Terminal)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		w, ok := hc.BodyWriter().(http.ResponseWriter)
		if !ok || !strings.EqualFold(hc.Header("Upgrade"), api.TerminalProtocol) {
			hc.SetHeader("Upgrade", api.TerminalProtocol)
			hc.SetStatus(http.StatusUpgradeRequired)
			return
		}
		done := r.server.Upgraded() // before the server stops tracking the connection
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			done()
			hc.SetStatus(http.StatusInternalServerError)
			return
		}
		defer done()
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Time{})
		stop := context.AfterFunc(hc.Context(), func() { _ = conn.Close() })
		defer stop()
		if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+api.TerminalProtocol+"\r\n\r\n"); err != nil {
			return
		}
		serve(hc.Context(), api.NewTerminal(&hijacked{conn, buffered.Reader}))
	}}
}

// hijacked is a connection with the bytes already read from it.
type hijacked struct {
	net.Conn
	r *bufio.Reader
}

func (h *hijacked) Read(p []byte) (int, error) { return h.r.Read(p) }
