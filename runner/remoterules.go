package runner

import (
	"context"
	"net/http"

	"carma/containers"
)

// remoteRule is what a request over TLS needs, before the rules of owners and admins
// that hold for every request.
type remoteRule struct {
	// task is what the caller may do to pods of the task's namespace, or of those of a
	// group's tasks; nil: the request is about no task.
	task *containers.Access
	// anybody: no token is asked for.
	anybody bool
	// admin: only admins.
	admin bool
	// never says why it is not offered; empty: it is.
	never string
}

const (
	neverPage   = "the page is served on the daemon's machine only; ssh reaches them (docs/page.md)"
	neverSuites = "helpers of suites: a cluster has Deployments and Services for them"
	neverProof  = "it is about GPUs of the daemon's machine; run it there"
)

// remoteRules are all requests of the API, by method and path. What is not here is
// refused. A test compares them with the API.
var remoteRules = map[string]remoteRule{
	"GET /healthz":       {anybody: true},
	"GET /readyz":        {anybody: true},
	"GET /v1/info":       {},
	"GET /v1/whoami":     {},
	"GET /v1/gpus":       {},
	"GET /v1/quotas":     {},
	"GET /v1/doctor":     {admin: true},
	"POST /v1/drain":     {admin: true},
	"GET /v1/used":       {},
	"GET /v1/timeline":   {},
	"POST /v1/web":       {never: neverPage},
	"PUT /v1/speed":      {never: neverProof},
	"POST /v1/prove":     {never: neverProof},
	"POST /v1/launching": {admin: true},

	"GET /v1/live/events":          {},
	"GET /v1/events":               {},
	"GET /v1/estimates/scores":     {},
	"POST /v1/calibrate":           {never: neverProof},
	"POST /v1/gpus/close":          {admin: true},
	"GET /v1/reservations":         {},
	"POST /v1/reservations":        {admin: true},
	"DELETE /v1/reservations/{id}": {admin: true},
	"GET /v1/notify":               {},
	"PUT /v1/notify":               {},
	"POST /v1/notify/test":         {},

	"PUT /v1/suites/{suite}":                       {never: neverSuites},
	"GET /v1/suites/{suite}":                       {never: neverSuites},
	"DELETE /v1/suites/{suite}":                    {never: neverSuites},
	"GET /v1/suites/{suite}/helpers/{helper}/logs": {never: neverSuites},

	"GET /v1/tasks":                {},
	"POST /v1/tasks":               {}, // placing asks
	"POST /v1/submissions":         {},
	"POST /v1/submissions/preview": {},

	"GET /v1/tasks/{task}":          {task: &maySee},
	"GET /v1/tasks/{task}/why":      {task: &maySee},
	"GET /v1/tasks/{task}/events":   {task: &maySee},
	"GET /v1/tasks/{task}/history":  {task: &maySee},
	"GET /v1/tasks/{task}/logs":     {task: &mayLogs},
	"POST /v1/tasks/{task}/attach":  {task: &mayAttach},
	"POST /v1/tasks/{task}/exec":    {task: &mayExec},
	"PATCH /v1/tasks/{task}":        {task: &mayEnd},
	"DELETE /v1/tasks/{task}":       {task: &mayEnd},
	"POST /v1/tasks/{task}/stop":    {task: &mayEnd},
	"POST /v1/tasks/{task}/hold":    {task: &mayEnd},
	"POST /v1/tasks/{task}/release": {task: &mayEnd},
	"POST /v1/tasks/{task}/suspend": {task: &mayEnd},
	"POST /v1/tasks/{task}/resume":  {task: &mayEnd},
	"POST /v1/tasks/{task}/requeue": {task: &mayEnd},
	"POST /v1/tasks/{task}/move":    {task: &mayEnd},
	"POST /v1/tasks/{task}/pin":     {task: &mayEnd},
	"GET /v1/groups/{group}":        {task: &maySee},
	"POST /v1/groups/{group}/stop":  {task: &mayEnd},
}

// guarded are the requests that are offered over TLS, each behind its rule.
func (r *Runner) guarded(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	for pattern, rule := range remoteRules {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			req, err := r.entering(req, rule)
			if err != nil {
				writeRefusal(w, err)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		_, err := r.entering(req, remoteRule{never: "it is for the daemon's machine"})
		writeRefusal(w, err)
	})
	return mux
}

// entering checks a request by its rule, and returns it with its caller. A task is named
// by its number from then on: another task may get its name meanwhile.
func (r *Runner) entering(req *http.Request, rule remoteRule) (*http.Request, error) {
	if rule.anybody {
		return req, nil
	}
	who, err := r.bearer(req)
	if err != nil {
		return nil, err
	}
	ctx := context.WithValue(req.Context(), callerKey{}, who)
	switch {
	case rule.never != "":
		return nil, refusef(403, "%s is not offered over TLS: %s", req.URL.Path, rule.never)
	case rule.admin:
		if err := r.mayAdmin(ctx, req.URL.Path); err != nil {
			return nil, err
		}
	case rule.task != nil && req.PathValue("group") != "":
		if err := r.mayToGroup(ctx, who, *rule.task, req.PathValue("group")); err != nil {
			return nil, err
		}
	case rule.task != nil:
		rec, err := r.mayTo(ctx, who, *rule.task, req.PathValue("task"))
		if err != nil {
			return nil, err
		}
		req = req.Clone(ctx)
		req.URL.Path, req.URL.RawPath = numbered(req.URL.Path, rec), ""
	}
	return req.WithContext(ctx), nil
}

// mayTo returns a task that the caller may do something to. One of which they may not
// know is not found.
func (r *Runner) mayTo(ctx context.Context, who Caller, what containers.Access, ref string) (*Record, error) {
	rec, err := r.Find(ref)
	if err != nil {
		return nil, hiddenGroup(err, ref)
	}
	sight := r.sight(ctx)
	if !sight.of(rec) {
		if sight.err != nil {
			return nil, sight.err
		}
		return nil, noTask(ref)
	}
	return rec, r.mayInNamespace(ctx, who, in(what, r.namespaceOf(rec)))
}

// mayToGroup is mayTo for all tasks of a group.
func (r *Runner) mayToGroup(ctx context.Context, who Caller, what containers.Access, name string) error {
	recs, err := r.group(name)
	if err != nil {
		return err
	}
	known, sight := map[string]bool{}, r.sight(ctx)
	for _, rec := range recs {
		namespace := r.namespaceOf(rec)
		if known[namespace] {
			continue
		}
		known[namespace] = true
		if !sight.of(rec) {
			if sight.err != nil {
				return sight.err
			}
			return refusef(404, "no group %s; `carma ps -a` lists all tasks", name)
		}
		if err := r.mayInNamespace(ctx, who, in(what, namespace)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) mayInNamespace(ctx context.Context, who Caller, what containers.Access) error {
	yes, err := r.reviews.may(ctx, who.Subject, what)
	if err == nil && !yes {
		err = refusef(403, "you may not %s; you are %s", accessText(what), who.Name)
	}
	return err
}
