package runner

import (
	"context"

	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/endpoint"
	"carma/runner/health"
	"carma/runner/httplimit"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/sse"

	"github.com/danielgtaylor/huma/v2"
)

const (
	neverPage   = "the page is served on the daemon's machine only; ssh reaches them (docs/monitoring.md)"
	neverSuites = "helpers of suites: a cluster has Deployments and Services for them"
	neverProof  = "it is about GPUs of the daemon's machine; run it there"
)

var (
	// shownTask lists the actions that decide which parts of a task an answer shows.
	shownTask   = []rights.Action{rights.See, rights.ListEnvironment, rights.Output, rights.Progress}
	shownServer = append([]rights.Action{rights.SeeServer}, shownTask...)
	// submitting are the actions that a submission may ask about. Placing asks the cluster.
	submitting = []rights.Action{rights.Submit, rights.HighPriority, rights.Unlimited, rights.AnyAccount, rights.AnyNamespace, rights.HostTasks, rights.MountAll, rights.ChooseUser}
)

// endpoints returns all requests of the API. A request that is not here is refused over
// TLS. A test makes each request as every caller.
func (r *Runner) endpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		health.Endpoint(api.Healthz, "it lives", "its loop has stood still for a while: restart it; running tasks go on", r.health.Unhealthy),
		health.Endpoint(api.Readyz, "they can", "a line per problem", r.health.Unready),

		endpoint.Get(api.GetInfo, endpoint.Needs(rights.SeeServer, rights.SeeUse), r.overview.Info),
		endpoint.Get(api.GetMe, endpoint.Needs(rights.SeeServer), r.authz.Me),
		endpoint.Get(api.ListGPUs, endpoint.Needs(rights.SeeServer), r.overview.ListGPUs),
		endpoint.Get(api.GetDoctor, endpoint.Needs(rights.Doctor), func(ctx context.Context) ([]api.Check, error) { return r.Doctor(ctx), nil }),
		endpoint.Query(api.GetQuotas, endpoint.Needs(rights.SeeServer, rights.SeeUse), func(ctx context.Context, in *api.QuotaOptions) ([]api.Account, error) {
			who, _ := request.CallerFrom(ctx)
			return r.control.Quotas(ctx, who, in.Names)
		}),
		endpoint.Query(api.GetUsed, endpoint.Needs(rights.SeeServer, rights.SeeUse), func(ctx context.Context, in *api.UsedOptions) ([]api.Used, error) {
			return r.past.List(ctx, in.Since, in.Until)
		}),
		endpoint.Query(api.GetTimeline, endpoint.Needs(rights.SeeServer, rights.See), func(ctx context.Context, in *api.TimelineOptions) (api.Timeline, error) {
			return r.query.Timeline(ctx, in.Since, in.Until)
		}),
		endpoint.Act(api.GetScores, endpoint.Needs(rights.SeeServer, rights.AllScores), func(ctx context.Context, who request.Caller, _ *api.None) (api.Scores, error) {
			return r.query.Scores(ctx, who)
		}),
		endpoint.Query(api.GetAudit, endpoint.Needs(rights.OwnAudit, rights.AllAudit), func(ctx context.Context, in *api.AuditOptions) (api.Audit, error) {
			return r.authz.Audit(ctx, *in)
		}),
		endpoint.Act(api.DrainDaemon, endpoint.Needs(rights.Drain), func(ctx context.Context, who request.Caller, _ *api.None) (api.Info, error) { return r.Drain(ctx, who) }),
		endpoint.Act(api.GetWebTicket, endpoint.Local(neverPage, rights.Page), func(_ context.Context, who request.Caller, _ *api.None) (api.WebLogin, error) {
			return r.server.WebLogin(who)
		}),
		endpoint.Act(api.SetSpeed, endpoint.Local(neverProof, rights.Speed), r.setSpeed),
		endpoint.Act(api.ProveGPUs, endpoint.Local(neverProof, rights.Prove), r.prove),
		endpoint.Act(api.CalibrateGPU, endpoint.Local(neverProof, rights.Calibrate), r.calibrate),
		endpoint.Closing(api.PauseLaunches, endpoint.Needs(rights.Pause), r.control.PauseLaunching, r.overview.Info),
		endpoint.Closing(api.DrainGPUs, endpoint.Needs(rights.DrainGPUs), r.control.CloseGPUs, r.overview.ListGPUs),
		endpoint.Get(api.ListReservations, endpoint.Needs(rights.SeeServer), r.control.Reservations),
		endpoint.Act(api.Reserve, endpoint.Needs(rights.Reserve), func(ctx context.Context, who request.Caller, in *api.With[api.ReserveRequest]) (api.Reservation, error) {
			return r.control.Reserve(ctx, who, in.Body)
		}),
		endpoint.Drop(api.Unreserve, endpoint.Needs(rights.Unreserve), func(ctx context.Context, who request.Caller, in *api.ReservationPath) error {
			return r.control.Unreserve(ctx, who, in.ID)
		}),
		endpoint.Stream(api.WatchLive, endpoint.Needs(rights.SeeServer, rights.See, rights.Progress), endpoint.LiveEvents, func(context.Context, *api.None) (*huma.StreamResponse, error) {
			return sse.Stream(func(ctx context.Context, s *sse.Sender) error { return r.dashboard.Watch(ctx, s.Write) }), nil
		}),
		endpoint.Stream(api.WatchTasks, endpoint.Needs(shownServer...), taskEvents, func(context.Context, *api.None) (*huma.StreamResponse, error) {
			return sse.Stream(r.streams.All), nil
		}),

		endpoint.Get(api.GetNotify, endpoint.Needs(rights.Messages, rights.Channels), r.channels.View),
		endpoint.Act(api.SetNotify, endpoint.Needs(rights.Messages), func(ctx context.Context, _ request.Caller, in *api.With[api.NotifySettings]) (api.Notify, error) {
			if err := r.channels.Set(ctx, in.Body); err != nil {
				return api.Notify{}, err
			}
			return r.channels.View(ctx)
		}),
		endpoint.Act(api.TestNotify, endpoint.Needs(rights.Messages, rights.Channels), func(ctx context.Context, _ request.Caller, in *api.With[api.NotifyTest]) ([]api.NotifyTested, error) {
			return r.channels.Test(ctx, in.Body)
		}),

		// PutSuite always creates the suite for the caller.
		endpoint.Act(api.PutSuite, endpoint.Local(neverSuites, rights.Submit, rights.Unlimited), func(ctx context.Context, who request.Caller, in *api.SuitePut) (api.SuiteState, error) {
			return r.suites.Put(ctx, who, in.Suite, in.Body, in.Check)
		}),
		endpoint.Act(api.GetSuite, endpoint.Local(neverSuites, rights.SeeSuite), r.suites.Get),
		endpoint.Act(api.DropSuite, endpoint.Local(neverSuites, rights.DropSuite, rights.DropVolumes), r.suites.Drop),
		endpoint.Stream(api.ReadHelperLogs, endpoint.Local(neverSuites, rights.HelperOutput), helperEvents, r.suites.Logs),

		endpoint.Act(api.SubmitTask, endpoint.Needs(submitting...), func(ctx context.Context, who request.Caller, in *api.WithImages[api.Submit]) (api.Submitted, error) {
			return r.admission.Submit(ctx, who, in.Body)
		}),
		endpoint.Act(api.SubmitTasks, endpoint.Needs(submitting...), func(ctx context.Context, who request.Caller, _ *api.WithImages[api.Submission]) (api.SubmittedAll, error) {
			return r.admission.SubmitAll(ctx, who, httplimit.SubmissionFrom(ctx))
		}, endpoint.Decoded),
		endpoint.Act(api.PreviewTasks, endpoint.Needs(submitting...), func(ctx context.Context, who request.Caller, _ *api.WithImages[api.Submission]) (api.Preview, error) {
			return r.admission.Preview(ctx, who, httplimit.SubmissionFrom(ctx))
		}, endpoint.Decoded),
		endpoint.Serve(api.ListTasks, endpoint.Needs(shownServer...), func(ctx context.Context, in *api.ListOptions) (*tasksPage, error) {
			list, next, err := r.query.Page(ctx, *in)
			return &tasksPage{Next: next, Body: list}, err
		}),
		endpoint.Serve(api.GetGroup, endpoint.OnPods(&access.GetPods, shownTask...), func(ctx context.Context, in *api.GroupPage) (*groupPage, error) {
			list, next, err := r.query.Group(ctx, in.Name, api.ListOptions{Limit: in.Limit, After: in.After})
			return &groupPage{Next: next, Body: list}, err
		}),
		endpoint.Act(api.StopGroup, endpoint.OnPods(&access.DeletePods, rights.Stop), func(ctx context.Context, who request.Caller, in *api.GroupStop) (api.Stopped, error) {
			return r.control.StopGroup(ctx, who, in.Name, in.Body)
		}),

		endpoint.OfTask(api.GetTask, endpoint.OnPods(&access.GetPods, rights.See, rights.Environment, rights.Output, rights.Progress, rights.Undelivered), r.query.Inspect),
		endpoint.OfTask(api.GetWhy, endpoint.OnPods(&access.GetPods, rights.See, rights.Output), r.query.Why),
		endpoint.OfTask(api.GetHistory, endpoint.OnPods(&access.GetPods, rights.See, rights.Output), r.history.Of),
		endpoint.Stream(api.WatchTask, endpoint.OnPods(&access.GetPods, shownTask...), taskEvents, r.streams.States),
		endpoint.Stream(api.ReadLogs, endpoint.OnPods(&access.GetLogs, rights.Output), taskEvents, r.streams.Logs),
		endpoint.Upgraded(api.AttachTask, endpoint.OnPods(&access.AttachPods, rights.Attach), r.terminals.Attach),
		endpoint.Upgraded(api.ExecInTask, endpoint.OnPods(&access.ExecPods, rights.Exec), r.terminals.Exec),
		changing(r, api.UpdateTask, endpoint.OnPods(&access.DeletePods, rights.Update, rights.HighPriority), r.admission.Update),
		changing(r, api.StopTask, endpoint.OnPods(&access.DeletePods, rights.Stop), r.control.Stop),
		changing(r, api.HoldTask, endpoint.OnPods(&access.DeletePods, rights.Hold), r.control.Hold),
		changing(r, api.ReleaseTask, endpoint.OnPods(&access.DeletePods, rights.Release), withoutNote(r.control.Release)),
		changing(r, api.SuspendTask, endpoint.OnPods(&access.DeletePods, rights.Suspend), r.control.Suspend),
		changing(r, api.ResumeTask, endpoint.OnPods(&access.DeletePods, rights.Resume), withoutNote(r.control.Resume)),
		changing(r, api.RequeueTask, endpoint.OnPods(&access.DeletePods, rights.Requeue), r.control.Requeue),
		changing(r, api.MoveTask, endpoint.OnPods(&access.DeletePods, rights.Move), r.control.Move),
		changing(r, api.PinTask, endpoint.OnPods(&access.DeletePods, rights.Pin), r.control.Pin),
		endpoint.Drop(api.RemoveTask, endpoint.OnPods(&access.DeletePods, rights.Remove), func(ctx context.Context, who request.Caller, in *api.TaskPath) error {
			return r.control.Remove(ctx, who, in.Ref)
		}),
	}
}

var (
	taskEvents   = endpoint.Events("`task` (a Task) and `log` (a LogLine)")
	helperEvents = endpoint.Events("`log` (a LogLine), and `end` after the last")
)

// changing returns the endpoint of a route that changes a task and answers with the task.
func changing[B any](r *Runner, to api.Route[api.OnTask[B], api.Task], need endpoint.Rule, do func(context.Context, request.Caller, string, B) (*record.Record, error)) endpoint.Endpoint {
	return endpoint.Act(to, need, func(ctx context.Context, who request.Caller, in *api.OnTask[B]) (api.Task, error) {
		rec, err := do(ctx, who, in.Ref, in.Body)
		if err != nil {
			return api.Task{}, err
		}
		return r.query.Task(ctx, rec.ID().String())
	})
}

func withoutNote(do func(context.Context, request.Caller, string) (*record.Record, error)) func(context.Context, request.Caller, string, api.Note) (*record.Record, error) {
	return func(ctx context.Context, who request.Caller, ref string, _ api.Note) (*record.Record, error) {
		return do(ctx, who, ref)
	}
}
