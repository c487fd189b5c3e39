package runner

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"carma/mapper"
	"carma/runner/api"
	"carma/runner/endpoint"
	"carma/runner/httplimit"
	"carma/runner/metrics"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/server"
	"carma/runner/usermounts"

	"github.com/danielgtaylor/huma/v2"
)

// newServer returns the server of the API.
func (r *Runner) newServer() *server.Server {
	return server.New(server.Config{
		API: r.Handler, Guard: r.guarded, BeginStop: r.loop.BeginStop, Log: r.Log,
		Connections: func() int { return r.live().PerUser.Connections }, Unlimited: usermounts.MayMountAll,
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

// MetricsPage returns the page of metrics, with or without figures of single tasks and
// users.
func (r *Runner) MetricsPage(names metrics.Names) http.Handler { return r.pages.Handler(names) }

// Turn waits until the loop has made a round, which shows that the daemon works, and
// returns nil.
func (r *Runner) Turn(ctx context.Context) error { return r.loop.Look(ctx, func(*mapper.State) {}) }

// OpenAPI returns the description of the API that the daemon serves at /openapi.json.
func OpenAPI() ([]byte, error) {
	a, _ := new(Runner).routes()
	return json.Marshal(a.OpenAPI())
}

func (r *Runner) routes() (huma.API, *http.ServeMux) {
	return endpoint.New(r.opt.Version, r.authz, r.endpoints())
}

// guarded returns a handler of the requests that are offered over TLS.
func (r *Runner) guarded(next http.Handler) http.Handler {
	return endpoint.Guard(r.endpoints(), r.authz, endpoint.Tasks{Task: r.find.Find, Group: r.find.Group}, next)
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

func (r *Runner) setSpeed(ctx context.Context, who request.Caller, in *api.With[api.SpeedChange]) (api.Info, error) {
	if err := r.authz.AuthorizeServer(who, rights.Speed, "", strconv.FormatFloat(in.Body.Speed, 'g', -1, 64)); err != nil {
		return api.Info{}, err
	}
	if err := r.SetSpeed(in.Body.Speed); err != nil {
		return api.Info{}, request.Errorf(409, "%v", err)
	}
	return r.overview.Info(ctx)
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
