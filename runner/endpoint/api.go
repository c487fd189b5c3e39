package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"carma/containers"
	"carma/runner/access"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// New returns the API of a version of carma with some endpoints, and its handler. by checks
// the rules.
func New(version string, by *access.Authorizer, all []Endpoint) (huma.API, *http.ServeMux) {
	mux := http.NewServeMux()
	cfg := huma.DefaultConfig("carma", version)
	cfg.Info.Description = "Jobs on a shared GPU server. Served on a unix socket; the caller is the peer of the socket."
	cfg.DocsPath = ""
	cfg.CreateHooks = nil // no $schema field in the answers
	a := humago.New(mux, cfg)
	for _, e := range all {
		e.register(a, door(a, by, e.Rule))
	}
	return a, mux
}

// door refuses a request about the server if its caller may not make it. Requests about a
// task are refused where the task is found.
func door(a huma.API, by *access.Authorizer, need Rule) middleware {
	return func(ctx huma.Context, next func(huma.Context)) {
		who, ok := request.CallerFrom(ctx.Context())
		if ok && len(need.Acts) > 0 && need.Acts[0].OnServer() {
			if err := by.CheckServer(who, need.Acts[0]); err != nil {
				_ = huma.WriteErr(a, ctx, http.StatusForbidden, err.Error()) // if it fails, nobody reads the answer
				return
			}
		}
		next(ctx)
	}
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

// Tasks finds the tasks that a request over TLS is about.
type Tasks struct {
	Task  func(ref string) (*record.Record, error)
	Group func(name string) ([]*record.Record, error)
}

// Guard returns a handler of the requests over TLS, which checks the rule of each before
// next.
func Guard(all []Endpoint, by *access.Authorizer, tasks Tasks, next http.Handler) http.Handler {
	mux, g := http.NewServeMux(), &guard{by: by, tasks: tasks}
	for _, e := range all {
		mux.HandleFunc(e.Pattern, func(w http.ResponseWriter, req *http.Request) {
			req, err := g.enter(req, e.Rule)
			if err != nil {
				writeRefusal(w, err)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		_, err := g.enter(req, Rule{Never: "it is for the daemon's machine"})
		writeRefusal(w, err)
	})
	return mux
}

// guard checks requests over TLS.
type guard struct {
	by    *access.Authorizer
	tasks Tasks
}

// enter checks a request by its rule, and returns it with its caller. A task is named by
// its number from then on: another task may get its name meanwhile.
func (g *guard) enter(req *http.Request, rule Rule) (*http.Request, error) {
	if rule.Anybody {
		return req, nil
	}
	who, err := g.by.Bearer(req)
	if err != nil {
		return nil, err
	}
	ctx := request.WithCaller(req.Context(), who)
	switch {
	case rule.Never != "":
		return nil, request.Errorf(403, "%s is not offered over TLS: %s", req.URL.Path, rule.Never)
	case rule.Pods != nil && req.PathValue("group") != "":
		if err := g.mayToGroup(ctx, who, *rule.Pods, req.PathValue("group")); err != nil {
			return nil, err
		}
	case rule.Pods != nil:
		rec, err := g.mayTo(ctx, who, *rule.Pods, req.PathValue("task"))
		if err != nil {
			return nil, err
		}
		req = req.Clone(ctx)
		req.URL.Path, req.URL.RawPath = numbered(req.URL.Path, rec), ""
	}
	return req.WithContext(ctx), nil
}

// mayTo returns a task that the caller may do something to. A task that the caller may
// not know of is not found. The error does not say that a group has this name, because the
// caller may not know of that group.
func (g *guard) mayTo(ctx context.Context, who request.Caller, what containers.Access, ref string) (*record.Record, error) {
	none := request.Errorf(404, "no task %s; `carma ps -a` lists all", ref)
	rec, err := g.tasks.Task(ref)
	if request.IsNotFound(err) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	return rec, g.by.AuthorizePods(ctx, who, what, none, rec)
}

// mayToGroup does what mayTo does for all tasks of a group.
func (g *guard) mayToGroup(ctx context.Context, who request.Caller, what containers.Access, name string) error {
	recs, err := g.tasks.Group(name)
	if err != nil {
		return err
	}
	return g.by.AuthorizePods(ctx, who, what, request.Errorf(404, "no group %s; `carma ps -a` lists all tasks", name), recs...)
}

// numbered returns the path of a request about a task, with the task's number in place of
// its name.
func numbered(path string, rec *record.Record) string {
	rest := strings.TrimPrefix(path, "/v1/tasks/")
	_, after, more := strings.Cut(rest, "/")
	path = "/v1/tasks/" + url.PathEscape(strconv.FormatInt(int64(rec.ID()), 10))
	if more {
		path += "/" + after
	}
	return path
}

// writeRefusal answers a request that was refused before the API handled it.
func writeRefusal(w http.ResponseWriter, err error) {
	refused, ok := errors.AsType[*request.Error](err)
	if !ok {
		refused = request.Errorf(500, "%v", err)
		if errors.Is(err, context.Canceled) {
			refused = request.ErrStopping
		}
	}
	text, _ := json.Marshal(huma.NewError(refused.Status, refused.Text))
	if refused.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(refused.Status)
	_, _ = w.Write(text)
}
