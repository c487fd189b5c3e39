package runner

import (
	"context"
	"net/http"

	"carma/containers"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
)

// route is what a request of the API asks the table of rights, and what it needs of the
// cluster over TLS.
type route struct {
	// acts are the actions that it asks the table about. The first one decides whether
	// the request is answered; without the right to another one, the answer has less.
	acts []rights.Action
	// pods is the right to pods of the namespace of the task, or of the group's tasks,
	// that a user of the cluster needs beside that, or nil if it is about no task.
	pods *containers.Access
	// anybody reports whether the request is answered without a caller.
	anybody bool
	// never says why the request is not offered over TLS, or is empty.
	never string
}

const (
	neverPage   = "the page is served on the daemon's machine only; ssh reaches them (docs/monitoring.md)"
	neverSuites = "helpers of suites: a cluster has Deployments and Services for them"
	neverProof  = "it is about GPUs of the daemon's machine; run it there"
)

// acts lists actions.
func acts(list ...rights.Action) []rights.Action { return list }

// shownTask are the actions by which an answer with tasks is made.
var shownTask = acts(rights.See, rights.ListEnvironment, rights.Output, rights.Progress)

// routes are all requests of the API, by method and path. A request that is not here is
// refused over TLS. A test compares them with the API, and makes each of them as every
// caller.
var routes = map[string]route{
	"GET /healthz": {anybody: true},
	"GET /readyz":  {anybody: true},

	"GET /v1/info":                 {acts: acts(rights.SeeServer, rights.SeeUse)},
	"GET /v1/whoami":               {acts: acts(rights.SeeServer)},
	"GET /v1/gpus":                 {acts: acts(rights.SeeServer)},
	"GET /v1/quotas":               {acts: acts(rights.SeeServer, rights.SeeUse)},
	"GET /v1/doctor":               {acts: acts(rights.Doctor)},
	"GET /v1/audit":                {acts: acts(rights.OwnAudit, rights.AllAudit)},
	"POST /v1/drain":               {acts: acts(rights.Drain)},
	"GET /v1/used":                 {acts: acts(rights.SeeServer, rights.SeeUse)},
	"GET /v1/timeline":             {acts: acts(rights.SeeServer, rights.See)},
	"POST /v1/web":                 {acts: acts(rights.Page), never: neverPage},
	"PUT /v1/speed":                {acts: acts(rights.Speed), never: neverProof},
	"POST /v1/prove":               {acts: acts(rights.Prove), never: neverProof},
	"POST /v1/launching":           {acts: acts(rights.Pause)},
	"GET /v1/live/events":          {acts: acts(rights.SeeServer, rights.See, rights.Progress)},
	"GET /v1/events":               {acts: append(acts(rights.SeeServer), shownTask...)},
	"GET /v1/estimates/scores":     {acts: acts(rights.SeeServer, rights.AllScores)},
	"POST /v1/calibrate":           {acts: acts(rights.Calibrate), never: neverProof},
	"POST /v1/gpus/close":          {acts: acts(rights.DrainGPUs)},
	"GET /v1/reservations":         {acts: acts(rights.SeeServer)},
	"POST /v1/reservations":        {acts: acts(rights.Reserve)},
	"DELETE /v1/reservations/{id}": {acts: acts(rights.Unreserve)},
	"GET /v1/notify":               {acts: acts(rights.Messages, rights.Channels)},
	"PUT /v1/notify":               {acts: acts(rights.Messages)},
	"POST /v1/notify/test":         {acts: acts(rights.Messages, rights.Channels)},

	// A suite that is put is the caller's own.
	"PUT /v1/suites/{suite}":                       {acts: acts(rights.Submit, rights.Unlimited), never: neverSuites},
	"GET /v1/suites/{suite}":                       {acts: acts(rights.SeeSuite), never: neverSuites},
	"DELETE /v1/suites/{suite}":                    {acts: acts(rights.DropSuite, rights.DropVolumes), never: neverSuites},
	"GET /v1/suites/{suite}/helpers/{helper}/logs": {acts: acts(rights.HelperOutput), never: neverSuites},

	"GET /v1/tasks":                {acts: append(acts(rights.SeeServer), shownTask...)},
	"POST /v1/tasks":               {acts: submitting}, // placing asks the cluster
	"POST /v1/submissions":         {acts: submitting},
	"POST /v1/submissions/preview": {acts: submitting},

	"GET /v1/tasks/{task}":          {acts: acts(rights.See, rights.Environment, rights.Output, rights.Progress, rights.Undelivered), pods: &maySee},
	"GET /v1/tasks/{task}/why":      {acts: acts(rights.See, rights.Output), pods: &maySee},
	"GET /v1/tasks/{task}/events":   {acts: shownTask, pods: &maySee},
	"GET /v1/tasks/{task}/history":  {acts: acts(rights.See, rights.Output), pods: &maySee},
	"GET /v1/tasks/{task}/logs":     {acts: acts(rights.Output), pods: &mayLogs},
	"POST /v1/tasks/{task}/attach":  {acts: acts(rights.Attach), pods: &mayAttach},
	"POST /v1/tasks/{task}/exec":    {acts: acts(rights.Exec), pods: &mayExec},
	"PATCH /v1/tasks/{task}":        {acts: acts(rights.Update, rights.HighPriority), pods: &mayEnd},
	"DELETE /v1/tasks/{task}":       {acts: acts(rights.Remove), pods: &mayEnd},
	"POST /v1/tasks/{task}/stop":    {acts: acts(rights.Stop), pods: &mayEnd},
	"POST /v1/tasks/{task}/hold":    {acts: acts(rights.Hold), pods: &mayEnd},
	"POST /v1/tasks/{task}/release": {acts: acts(rights.Release), pods: &mayEnd},
	"POST /v1/tasks/{task}/suspend": {acts: acts(rights.Suspend), pods: &mayEnd},
	"POST /v1/tasks/{task}/resume":  {acts: acts(rights.Resume), pods: &mayEnd},
	"POST /v1/tasks/{task}/requeue": {acts: acts(rights.Requeue), pods: &mayEnd},
	"POST /v1/tasks/{task}/move":    {acts: acts(rights.Move), pods: &mayEnd},
	"POST /v1/tasks/{task}/pin":     {acts: acts(rights.Pin), pods: &mayEnd},
	"GET /v1/groups/{group}":        {acts: shownTask, pods: &maySee},
	"POST /v1/groups/{group}/stop":  {acts: acts(rights.Stop), pods: &mayEnd},
}

// submitting are the actions that a submission may ask about.
var submitting = acts(rights.Submit, rights.HighPriority, rights.Unlimited, rights.AnyAccount, rights.AnyNamespace, rights.HostTasks, rights.MountAll, rights.ChooseUser)

// door refuses a request about the server whose caller may not make it, before its body is
// looked at. Requests about a task are refused where the task is found.
func (r *Runner) door(a huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		op := ctx.Operation()
		who, ok := callerFrom(ctx.Context())
		if asked := routes[op.Method+" "+op.Path].acts; ok && len(asked) > 0 && asked[0].OnServer() {
			if err := r.checkServer(who, asked[0]); err != nil {
				_ = huma.WriteErr(a, ctx, http.StatusForbidden, err.Error()) // nobody reads it if that fails
				return
			}
		}
		next(ctx)
	}
}

// guarded are the requests that are offered over TLS, each behind its rule.
func (r *Runner) guarded(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	for pattern, rule := range routes {
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
		_, err := r.entering(req, route{never: "it is for the daemon's machine"})
		writeRefusal(w, err)
	})
	return mux
}

// entering checks a request by its rule, and returns it with its caller. A task is named
// by its number from then on: another task may get its name meanwhile.
func (r *Runner) entering(req *http.Request, rule route) (*http.Request, error) {
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
	case rule.pods != nil && req.PathValue("group") != "":
		if err := r.mayToGroup(ctx, who, *rule.pods, req.PathValue("group")); err != nil {
			return nil, err
		}
	case rule.pods != nil:
		rec, err := r.mayTo(ctx, who, *rule.pods, req.PathValue("task"))
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
