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
	"carma/runner/httplimit"
	"carma/runner/loop"
	"carma/runner/metrics"
	"carma/runner/request"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// ErrSocketInUse is the error if another daemon answers at the socket.
var ErrSocketInUse = errors.New("another daemon answers")

// Listen opens the unix socket. It replaces a socket at which nobody answers. If a daemon
// answers there, the error wraps [ErrSocketInUse]. Everybody on the machine may connect,
// and the kernel identifies them.
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
	return r.serve(ctx, httplimit.LimitConnections(l, httplimit.PlacesFor(httplimit.MaxConnections, 2), func() int { return r.live().PerUser.Connections }, mayMountAll), r.front(ctx))
}

// front returns the API with its usage limits.
func (r *Runner) front(ctx context.Context) http.Handler {
	return r.whileStopping(ctx, r.turns.Guard(r.Handler()))
}

// serve answers on l until ctx ends.
func (r *Runner) serve(ctx context.Context, l net.Listener, h http.Handler) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       httplimit.IdleLimit,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       httplimit.WithPeer,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		r.loop.BeginStop()
		cancel() // ends the streams
		limit, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer stop()
		if srv.Shutdown(limit) != nil {
			srv.Close()
		}
		ended := make(chan struct{})
		go func() { defer close(ended); r.upgraded.Wait() }()
		wait(limit, ended) // until then, commands are asked to end
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
		return huma.NewError(loop.ErrStopping.Status, loop.ErrStopping.Text)
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
