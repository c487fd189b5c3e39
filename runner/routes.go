package runner

import (
	"context"
	"net/http"

	"carma/containers"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/httplimit"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
)

// rule lists the rights that an API request needs, in the table of rights and in the
// cluster over TLS.
type rule struct {
	// acts are the actions that are looked up in the table of rights. The first action
	// decides whether the request is answered. Without the right to another action, parts
	// of the answer are left out.
	acts []rights.Action
	// pods is the additional right that a user of the cluster needs: to pods in the
	// namespace of the task, or of the group's tasks. It is nil if the request is about no
	// task.
	pods *containers.Access
	// anybody reports whether the request is answered without a caller.
	anybody bool
	// never is the reason why the request is not offered over TLS, or empty.
	never string
}

const (
	neverPage   = "the page is served on the daemon's machine only; ssh reaches them (docs/monitoring.md)"
	neverSuites = "helpers of suites: a cluster has Deployments and Services for them"
	neverProof  = "it is about GPUs of the daemon's machine; run it there"
)

// needs returns the rule of a request about the server.
func needs(acts ...rights.Action) rule { return rule{acts: acts} }

// onPods returns the rule of a request about a task or a group.
func onPods(pods *containers.Access, acts ...rights.Action) rule { return rule{acts: acts, pods: pods} }

// local returns the rule of a request that is not offered over TLS.
func local(never string, acts ...rights.Action) rule { return rule{acts: acts, never: never} }

var (
	// shownTask lists the actions that decide which parts of a task an answer shows.
	shownTask   = []rights.Action{rights.See, rights.ListEnvironment, rights.Output, rights.Progress}
	shownServer = append([]rights.Action{rights.SeeServer}, shownTask...)
	// submitting are the actions that a submission may ask about. Placing asks the cluster.
	submitting = []rights.Action{rights.Submit, rights.HighPriority, rights.Unlimited, rights.AnyAccount, rights.AnyNamespace, rights.HostTasks, rights.MountAll, rights.ChooseUser}
)

// endpoints returns all requests of the API. A request that is not here is refused over
// TLS. A test makes each request as every caller.
func (r *Runner) endpoints() []endpoint {
	return []endpoint{
		health(api.Healthz, "it lives", "its loop has stood still for a while: restart it; running tasks go on", r.unhealthy),
		health(api.Readyz, "they can", "a line per problem", r.unready),

		get(api.GetInfo, needs(rights.SeeServer, rights.SeeUse), r.Info),
		get(api.GetMe, needs(rights.SeeServer), r.authz.Me),
		get(api.ListGPUs, needs(rights.SeeServer), r.ListGPUs),
		get(api.GetDoctor, needs(rights.Doctor), func(ctx context.Context) ([]api.Check, error) { return r.Doctor(ctx), nil }),
		query(api.GetQuotas, needs(rights.SeeServer, rights.SeeUse), func(ctx context.Context, in *api.QuotaOptions) ([]api.Account, error) {
			who, _ := request.CallerFrom(ctx)
			return r.Quotas(ctx, who, in.Names)
		}),
		query(api.GetUsed, needs(rights.SeeServer, rights.SeeUse), func(ctx context.Context, in *api.UsedOptions) ([]api.Used, error) {
			return r.past.List(ctx, in.Since, in.Until)
		}),
		query(api.GetTimeline, needs(rights.SeeServer, rights.See), func(ctx context.Context, in *api.TimelineOptions) (api.Timeline, error) {
			return r.Timeline(ctx, in.Since, in.Until)
		}),
		act(api.GetScores, needs(rights.SeeServer, rights.AllScores), func(ctx context.Context, who request.Caller, _ *api.None) (api.Scores, error) {
			return r.Scores(ctx, who)
		}),
		query(api.GetAudit, needs(rights.OwnAudit, rights.AllAudit), func(ctx context.Context, in *api.AuditOptions) (api.Audit, error) {
			return r.authz.Audit(ctx, *in)
		}),
		act(api.DrainDaemon, needs(rights.Drain), func(ctx context.Context, who request.Caller, _ *api.None) (api.Info, error) { return r.Drain(ctx, who) }),
		act(api.GetWebTicket, local(neverPage, rights.Page), func(_ context.Context, who request.Caller, _ *api.None) (api.WebLogin, error) {
			return r.server.WebLogin(who)
		}),
		act(api.SetSpeed, local(neverProof, rights.Speed), r.setSpeed),
		act(api.ProveGPUs, local(neverProof, rights.Prove), r.prove),
		act(api.CalibrateGPU, local(neverProof, rights.Calibrate), r.calibrate),
		closing(api.PauseLaunches, needs(rights.Pause), r.PauseLaunching, r.Info),
		closing(api.DrainGPUs, needs(rights.DrainGPUs), r.CloseGPUs, r.ListGPUs),
		get(api.ListReservations, needs(rights.SeeServer), r.Reservations),
		act(api.Reserve, needs(rights.Reserve), func(ctx context.Context, who request.Caller, in *api.With[api.ReserveRequest]) (api.Reservation, error) {
			return r.Reserve(ctx, who, in.Body)
		}),
		drop(api.Unreserve, needs(rights.Unreserve), func(ctx context.Context, who request.Caller, in *api.ReservationPath) error {
			return r.Unreserve(ctx, who, in.ID)
		}),
		stream(api.WatchLive, needs(rights.SeeServer, rights.See, rights.Progress), liveEvents, func(context.Context, *api.None) (*huma.StreamResponse, error) {
			return sending(r.watchLive), nil
		}),
		stream(api.WatchTasks, needs(shownServer...), taskEvents, func(context.Context, *api.None) (*huma.StreamResponse, error) {
			return sending(r.watchAll), nil
		}),

		get(api.GetNotify, needs(rights.Messages, rights.Channels), r.channels.View),
		act(api.SetNotify, needs(rights.Messages), func(ctx context.Context, _ request.Caller, in *api.With[api.NotifySettings]) (api.Notify, error) {
			if err := r.channels.Set(ctx, in.Body); err != nil {
				return api.Notify{}, err
			}
			return r.channels.View(ctx)
		}),
		act(api.TestNotify, needs(rights.Messages, rights.Channels), func(ctx context.Context, _ request.Caller, in *api.With[api.NotifyTest]) ([]api.NotifyTested, error) {
			return r.channels.Test(ctx, in.Body)
		}),

		// PutSuite always creates the suite for the caller.
		act(api.PutSuite, local(neverSuites, rights.Submit, rights.Unlimited), func(ctx context.Context, who request.Caller, in *api.SuitePut) (api.SuiteState, error) {
			return r.PutSuite(ctx, who, in.Suite, in.Body, in.Check)
		}),
		act(api.GetSuite, local(neverSuites, rights.SeeSuite), r.suite),
		act(api.DropSuite, local(neverSuites, rights.DropSuite, rights.DropVolumes), r.dropSuite),
		stream(api.ReadHelperLogs, local(neverSuites, rights.HelperOutput), helperEvents, r.helperLogs),

		act(api.SubmitTask, needs(submitting...), func(ctx context.Context, who request.Caller, in *api.WithImages[api.Submit]) (api.Submitted, error) {
			return r.Submit(ctx, who, in.Body)
		}),
		act(api.SubmitTasks, needs(submitting...), func(ctx context.Context, who request.Caller, _ *api.WithImages[api.Submission]) (api.SubmittedAll, error) {
			return r.SubmitAll(ctx, who, httplimit.SubmissionFrom(ctx))
		}, decoded),
		act(api.PreviewTasks, needs(submitting...), func(ctx context.Context, who request.Caller, _ *api.WithImages[api.Submission]) (api.Preview, error) {
			return r.Preview(ctx, who, httplimit.SubmissionFrom(ctx))
		}, decoded),
		serve(api.ListTasks, needs(shownServer...), func(ctx context.Context, in *api.ListOptions) (*tasksPage, error) {
			list, next, err := r.page(ctx, *in)
			return &tasksPage{Next: next, Body: list}, err
		}),
		serve(api.GetGroup, onPods(&access.GetPods, shownTask...), func(ctx context.Context, in *api.GroupPage) (*groupPage, error) {
			list, next, err := r.Group(ctx, in.Name, api.ListOptions{Limit: in.Limit, After: in.After})
			return &groupPage{Next: next, Body: list}, err
		}),
		act(api.StopGroup, onPods(&access.DeletePods, rights.Stop), func(ctx context.Context, who request.Caller, in *api.GroupStop) (api.Stopped, error) {
			return r.StopGroup(ctx, who, in.Name, in.Body)
		}),

		ofTask(api.GetTask, onPods(&access.GetPods, rights.See, rights.Environment, rights.Output, rights.Progress, rights.Undelivered), r.Inspect),
		ofTask(api.GetWhy, onPods(&access.GetPods, rights.See, rights.Output), r.Why),
		ofTask(api.GetHistory, onPods(&access.GetPods, rights.See, rights.Output), r.History),
		stream(api.WatchTask, onPods(&access.GetPods, shownTask...), taskEvents, r.taskStates),
		stream(api.ReadLogs, onPods(&access.GetLogs, rights.Output), taskEvents, r.taskLogs),
		upgraded(api.AttachTask, onPods(&access.AttachPods, rights.Attach), r.attachTo),
		upgraded(api.ExecInTask, onPods(&access.ExecPods, rights.Exec), r.exec),
		changing(r, api.UpdateTask, onPods(&access.DeletePods, rights.Update, rights.HighPriority), r.Update),
		changing(r, api.StopTask, onPods(&access.DeletePods, rights.Stop), r.Stop),
		changing(r, api.HoldTask, onPods(&access.DeletePods, rights.Hold), r.Hold),
		changing(r, api.ReleaseTask, onPods(&access.DeletePods, rights.Release), withoutNote(r.Release)),
		changing(r, api.SuspendTask, onPods(&access.DeletePods, rights.Suspend), r.Suspend),
		changing(r, api.ResumeTask, onPods(&access.DeletePods, rights.Resume), withoutNote(r.Resume)),
		changing(r, api.RequeueTask, onPods(&access.DeletePods, rights.Requeue), r.Requeue),
		changing(r, api.MoveTask, onPods(&access.DeletePods, rights.Move), r.Move),
		changing(r, api.PinTask, onPods(&access.DeletePods, rights.Pin), r.Pin),
		drop(api.RemoveTask, onPods(&access.DeletePods, rights.Remove), func(ctx context.Context, who request.Caller, in *api.TaskPath) error {
			return r.Remove(ctx, who, in.Ref)
		}),
	}
}

// guarded returns a handler of the requests that are offered over TLS, which checks the
// rule of each.
func (r *Runner) guarded(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, e := range r.endpoints() {
		mux.HandleFunc(e.pattern, func(w http.ResponseWriter, req *http.Request) {
			req, err := r.entering(req, e.rule)
			if err != nil {
				writeRefusal(w, err)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		_, err := r.entering(req, rule{never: "it is for the daemon's machine"})
		writeRefusal(w, err)
	})
	return mux
}

// entering checks a request by its rule, and returns it with its caller. A task is named
// by its number from then on: another task may get its name meanwhile.
func (r *Runner) entering(req *http.Request, rule rule) (*http.Request, error) {
	if rule.anybody {
		return req, nil
	}
	who, err := r.authz.Bearer(req)
	if err != nil {
		return nil, err
	}
	ctx := request.WithCaller(req.Context(), who)
	switch {
	case rule.never != "":
		return nil, request.Errorf(403, "%s is not offered over TLS: %s", req.URL.Path, rule.never)
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

// mayTo returns a task that the caller may do something to. A task that the caller may
// not know of is not found.
func (r *Runner) mayTo(ctx context.Context, who request.Caller, what containers.Access, ref string) (*record.Record, error) {
	rec, err := r.Find(ref)
	if err != nil {
		return nil, hiddenGroup(err, ref)
	}
	return rec, r.authz.AuthorizePods(ctx, who, what, noTask(ref), rec)
}

// mayToGroup does what mayTo does for all tasks of a group.
func (r *Runner) mayToGroup(ctx context.Context, who request.Caller, what containers.Access, name string) error {
	recs, err := r.group(name)
	if err != nil {
		return err
	}
	return r.authz.AuthorizePods(ctx, who, what, request.Errorf(404, "no group %s; `carma ps -a` lists all tasks", name), recs...)
}
