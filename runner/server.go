package runner

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/httplimit"
	"carma/runner/metrics"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/server"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// newServer returns the server of the API.
func (r *Runner) newServer() *server.Server {
	return server.New(server.Config{
		API: r.Handler, Guard: r.guarded, BeginStop: r.loop.BeginStop, Log: r.Log,
		Connections: func() int { return r.live().PerUser.Connections }, Unlimited: mayMountAll,
		Caller:      func(uid, gid int) request.Caller { return r.users(uid, gid) },
		Administers: func(who request.Caller) bool { return r.authz.Administers(who) },
	})
}

// Server returns the server of the API, whose addresses beside the socket are set before
// RunAndServe.
func (r *Runner) Server() *server.Server { return r.server }

// Handler returns the API. Its OpenAPI document is at /openapi.json.
func (r *Runner) Handler() http.Handler {
	a, mux := r.routes()
	mux.Handle("GET /metrics", r.pages.Handler(metrics.WithNames))
	return httplimit.LimitRequests(a, mux)
}

// OpenAPI returns the description of the API that the daemon serves at /openapi.json.
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
	for _, e := range r.endpoints() {
		e.register(a, r.door(a, e.rule))
	}
	return a, mux
}

// tasksPage is one page of a listing.
type tasksPage struct {
	Next int64 `header:"Carma-Next" doc:"there are more: ask with before and this number; absent or 0: that was all"`
	Body []api.Task
}

// groupPage is one page of a group.
type groupPage struct {
	Next int64 `header:"Carma-Next" doc:"there are more: ask with after and this number; absent or 0: that was all"`
	Body []api.Task
}

// problem turns an error into an HTTP answer.
func problem(err error) error {
	var refused *request.Error
	switch {
	case errors.As(err, &refused):
		return huma.NewError(refused.Status, refused.Text)
	case errors.Is(err, containers.ErrUnavailable):
		return huma.Error503ServiceUnavailable(err.Error())
	case errors.Is(err, context.Canceled):
		// The daemon is stopping; if the caller has disconnected, nobody reads this.
		return huma.NewError(request.ErrStopping.Status, request.ErrStopping.Text)
	}
	return huma.Error500InternalServerError(err.Error())
}

func (r *Runner) setSpeed(ctx context.Context, who request.Caller, in *api.With[api.SpeedChange]) (api.Info, error) {
	if err := r.authz.AuthorizeServer(who, rights.Speed, "", strconv.FormatFloat(in.Body.Speed, 'g', -1, 64)); err != nil {
		return api.Info{}, err
	}
	if err := r.SetSpeed(in.Body.Speed); err != nil {
		return api.Info{}, request.Errorf(409, "%v", err)
	}
	return r.Info(ctx)
}

func (r *Runner) prove(ctx context.Context, who request.Caller, in *api.With[api.ProveRequest]) ([]api.Check, error) {
	if err := r.authz.AuthorizeServer(who, rights.Prove, "image "+in.Body.Image, ""); err != nil {
		return nil, err
	}
	return r.Prove(ctx, who, in.Body.Image)
}

func (r *Runner) calibrate(ctx context.Context, who request.Caller, in *api.With[api.CalibrateRequest]) (api.Calibration, error) {
	if err := r.authz.AuthorizeServer(who, rights.Calibrate, "image "+in.Body.Image, ""); err != nil {
		return api.Calibration{}, err
	}
	return r.Calibrate(ctx, who, in.Body.Image)
}
