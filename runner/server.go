package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/metrics"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// ErrSocketInUse is the error if another daemon answers at the socket.
var ErrSocketInUse = errors.New("another daemon answers")

// Listen opens the unix socket. It replaces one that nobody answers, else the
// error wraps [ErrSocketInUse]. Everybody on the machine may connect: the
// kernel tells who they are.
func Listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	if c, err := net.DialTimeout("unix", socket, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("%w at %s", ErrSocketInUse, socket)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(socket, 0o666)
}

// Serve answers the API on l until ctx ends.
func (r *Runner) Serve(ctx context.Context, l net.Listener) error {
	return r.serve(ctx, newDoorkeeper(l, placesFor(maxConnections, 2), func() int { return r.live().PerUser.Connections }, mayMountAll), r.front(ctx))
}

// front is the API with what bounds its use.
func (r *Runner) front(ctx context.Context) http.Handler {
	return r.whileStopping(ctx, r.turns.guard(r.Handler()))
}

// serve answers on l until ctx ends.
func (r *Runner) serve(ctx context.Context, l net.Listener, h http.Handler) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withCaller,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		r.stopping.Store(true)
		cancel() // ends the streams
		limit, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer stop()
		if srv.Shutdown(limit) != nil {
			srv.Close()
		}
		ended := make(chan struct{})
		go func() { defer close(ended); r.upgraded.Wait() }()
		wait(limit, ended) // commands are told to end
	}()
	err := srv.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-done
		return nil
	}
	cancel()
	return err
}

// wait waits for a channel to be closed, or for the end of ctx.
func wait(ctx context.Context, c <-chan struct{}) {
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// Handler returns the API. Its OpenAPI document is at /openapi.json.
func (r *Runner) Handler() http.Handler {
	a, mux := r.routes()
	mux.Handle("GET /metrics", r.pages.Handler(metrics.WithNames))
	return modest(a, mux)
}

// OpenAPI is the description of the API, as the daemon serves it at /openapi.json.
func OpenAPI() ([]byte, error) {
	a, _ := new(Runner).routes()
	return json.Marshal(a.OpenAPI())
}

func (r *Runner) routes() (huma.API, *http.ServeMux) {
	mux := http.NewServeMux()
	cfg := huma.DefaultConfig("carma", r.opt.Version)
	cfg.Info.Description = "Jobs on a shared GPU server. Served on a unix socket; the caller is the peer of the socket."
	cfg.DocsPath = ""
	cfg.CreateHooks = nil // no $schema field in the answers
	a := humago.New(mux, cfg)
	a.UseMiddleware(r.door(a))
	r.addTaskRoutes(a)
	r.addChangeRoutes(a)
	r.addGroupRoutes(a)
	r.addSuiteRoutes(a)
	r.addServerRoutes(a)
	r.addStreams(a)
	r.addLive(a)
	r.addNotify(a)
	r.addTimeline(a)
	r.addHistory(a)
	r.addAudit(a)
	r.addPage(a)
	r.addTerminals(a)
	r.addHealth(a)
	return a, mux
}

// tasksPage is one page of a listing.
type tasksPage struct {
	Next int64 `header:"Carma-Next" doc:"there are more: ask with before and this number; absent or 0: that was all"`
	Body []api.Task
}

type output[T any] struct{ Body T }

func answer[T any](v T, err error) (*output[T], error) {
	if err != nil {
		return nil, problem(err)
	}
	return &output[T]{v}, nil
}

// problem turns an error into an HTTP answer.
func problem(err error) error {
	var refused *RequestError
	switch {
	case errors.As(err, &refused):
		return huma.NewError(refused.Status, refused.Text)
	case errors.Is(err, containers.ErrUnavailable):
		return huma.Error503ServiceUnavailable(err.Error())
	case errors.Is(err, context.Canceled):
		// The daemon is stopping; if it is the caller who went away, nobody reads this.
		return huma.NewError(errStopping.Status, errStopping.Text)
	}
	return huma.Error500InternalServerError(err.Error())
}

// TaskRef is the path parameter that names a task; exported because huma
// fills embedded structs only then.
type TaskRef struct {
	Ref string `path:"task" doc:"a task's number or name"`
}

func operation(id, method, path, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: http.StatusOK,
		BodyReadTimeout: -1, // [modest] has read it; a limit left on the connection would cancel a request that takes longer
	}
}

const callerUnknown = "the caller is not known: connect through the unix socket"

func (r *Runner) addTaskRoutes(a huma.API) {
	huma.Register(a, operation("submit", http.MethodPost, "/v1/tasks", "Submit a task; it is durable when this answers"),
		func(ctx context.Context, in *struct {
			RegistryAuth
			Body api.Submit
		}) (*output[api.Submitted], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			ctx, err := in.within(ctx)
			if err != nil {
				return nil, err
			}
			return answer(r.Submit(ctx, who, in.Body))
		})
	huma.Register(a, operation("list", http.MethodGet, "/v1/tasks", "List tasks, newest first"),
		func(ctx context.Context, in *struct {
			All    bool      `query:"all" doc:"finished ones too"`
			User   string    `query:"user"`
			Group  string    `query:"group"`
			Label  string    `query:"label" doc:"key or key=value"`
			Mine   bool      `query:"mine" doc:"only the caller's"`
			Name   string    `query:"name" maxLength:"200" doc:"only names that fit, with * and ? as in a shell"`
			Phase  string    `query:"phase" doc:"only these phases, separated by commas"`
			Since  time.Time `query:"since" doc:"leave out what had ended before"`
			Until  time.Time `query:"until" doc:"leave out what was submitted then or later"`
			Limit  int       `query:"limit" minimum:"0" maximum:"1000" doc:"at most so many on one page; 0: 1000"`
			Before int64     `query:"before" minimum:"0" doc:"only tasks with lower numbers: the next page"`
		}) (*tasksPage, error) {
			list, next, err := r.page(ctx, api.ListOptions{All: in.All, User: in.User, Group: in.Group, Label: in.Label, Limit: in.Limit, Before: in.Before,
				Mine: in.Mine, Name: in.Name, Phase: in.Phase, Since: in.Since, Until: in.Until})
			if err != nil {
				return nil, problem(err)
			}
			return &tasksPage{Next: next, Body: list}, nil
		})
	huma.Register(a, operation("inspect", http.MethodGet, "/v1/tasks/{task}", "One task"),
		func(ctx context.Context, in *TaskRef) (*output[api.Task], error) {
			return answer(r.Inspect(ctx, in.Ref))
		})
	huma.Register(a, operation("why", http.MethodGet, "/v1/tasks/{task}/why", "Why a task waits, GPU by GPU"),
		func(ctx context.Context, in *TaskRef) (*output[api.Why], error) {
			return answer(r.Why(ctx, in.Ref))
		})
	huma.Register(a, operation("stop", http.MethodPost, "/v1/tasks/{task}/stop", "Stop a task"),
		func(ctx context.Context, in *struct {
			TaskRef
			Body api.StopRequest
		}) (*output[api.Task], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			rec, err := r.Stop(ctx, who, in.Ref, in.Body)
			if err != nil {
				return nil, problem(err)
			}
			return answer(r.Task(ctx, rec.ID().String()))
		})
	remove := operation("remove", http.MethodDelete, "/v1/tasks/{task}", "Delete a finished task and its output")
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(a, remove, func(ctx context.Context, in *TaskRef) (*struct{}, error) {
		who, ok := callerFrom(ctx)
		if !ok {
			return nil, huma.Error403Forbidden(callerUnknown)
		}
		if err := r.Remove(ctx, who, in.Ref); err != nil {
			return nil, problem(err)
		}
		return nil, nil
	})
}

func (r *Runner) addServerRoutes(a huma.API) {
	huma.Register(a, operation("gpus", http.MethodGet, "/v1/gpus", "The GPUs with what is reserved and used"),
		func(ctx context.Context, _ *struct{}) (*output[[]api.GPU], error) {
			return answer(r.ListGPUs(ctx))
		})
	huma.Register(a, operation("whoami", http.MethodGet, "/v1/whoami", "Who the daemon takes the caller for"),
		func(ctx context.Context, _ *struct{}) (*output[api.Me], error) {
			return answer(r.whoami(ctx))
		})
	huma.Register(a, operation("info", http.MethodGet, "/v1/info", "The daemon itself"),
		func(ctx context.Context, _ *struct{}) (*output[api.Info], error) {
			return answer(r.Info(ctx))
		})
	huma.Register(a, operation("doctor", http.MethodGet, "/v1/doctor", "Self-checks"),
		func(ctx context.Context, _ *struct{}) (*output[[]api.Check], error) {
			return answer(r.Doctor(ctx), nil)
		})
	huma.Register(a, operation("prove", http.MethodPost, "/v1/prove", "Start a container on each GPU and compare its limits with those it was given"),
		func(ctx context.Context, in *struct{ Body api.ProveRequest }) (*output[[]api.Check], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			if err := r.authorizeServer(who, rights.Prove, "image "+in.Body.Image, ""); err != nil {
				return nil, problem(err)
			}
			return answer(r.Prove(ctx, who, in.Body.Image))
		})
	huma.Register(a, operation("calibrate", http.MethodPost, "/v1/calibrate", "Measure what a process takes of a GPU beside its tensors, and estimate for that from now on"),
		func(ctx context.Context, in *struct{ Body api.CalibrateRequest }) (*output[api.Calibration], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			if err := r.authorizeServer(who, rights.Calibrate, "image "+in.Body.Image, ""); err != nil {
				return nil, problem(err)
			}
			return answer(r.Calibrate(ctx, who, in.Body.Image))
		})
	huma.Register(a, operation("drain", http.MethodPost, "/v1/drain", "Start nothing more, and end with the last running task"),
		func(ctx context.Context, _ *struct{}) (*output[api.Info], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			return answer(r.Drain(ctx, who))
		})
	huma.Register(a, operation("speed", http.MethodPut, "/v1/speed", "Set the speed of a simulated server"),
		func(ctx context.Context, in *struct{ Body api.SpeedChange }) (*output[api.Info], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			if err := r.authorizeServer(who, rights.Speed, "", strconv.FormatFloat(in.Body.Speed, 'g', -1, 64)); err != nil {
				return nil, problem(err)
			}
			if err := r.SetSpeed(in.Body.Speed); err != nil {
				return nil, huma.Error409Conflict(err.Error())
			}
			return answer(r.Info(ctx))
		})
}
