package runner

import (
	"context"
	"net/http"

	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/danielgtaylor/huma/v2"
)

// endpoint is a request that the daemon answers.
type endpoint struct {
	pattern string // method and path, as for [http.ServeMux]
	rule    rule
	// register adds it to an API. door is called before the body is read.
	register func(a huma.API, door middleware)
}

type middleware = func(huma.Context, func(huma.Context))

// description describes a request in the OpenAPI document, and how huma reads it.
type description func(huma.API, *huma.Operation)

// serve returns the endpoint of a route whose answer has more than its output. A is
// huma's form of the answer.
func serve[In, Out, A any](to api.Route[In, Out], need rule, do func(context.Context, *In) (*A, error), descriptions ...description) endpoint {
	register := func(a huma.API, door middleware) {
		op := huma.Operation{
			OperationID: to.ID, Method: to.Method, Path: to.Path, Summary: to.Summary, DefaultStatus: http.StatusOK, Middlewares: huma.Middlewares{door},
			BodyReadTimeout: -1, // [httplimit.LimitRequests] has read it; a limit left on the connection would cancel a request that takes longer
		}
		for _, describe := range descriptions {
			describe(a, &op)
		}
		huma.Register(a, op, func(ctx context.Context, in *In) (*A, error) {
			answer, err := do(ctx, in)
			if err != nil {
				return nil, problem(err)
			}
			return answer, nil
		})
	}
	return endpoint{to.Method + " " + to.Path, need, register}
}

type output[T any] struct{ Body T }

// query returns the endpoint of a route that is also answered if the caller is not known.
func query[In, Out any](to api.Route[In, Out], need rule, do func(context.Context, *In) (Out, error), descriptions ...description) endpoint {
	return serve(to, need, func(ctx context.Context, in *In) (*output[Out], error) {
		out, err := do(ctx, in)
		return &output[Out]{out}, err
	}, descriptions...)
}

// act returns the endpoint of a route that is answered to known callers.
func act[In, Out any](to api.Route[In, Out], need rule, do func(context.Context, request.Caller, *In) (Out, error), descriptions ...description) endpoint {
	return query(to, need, func(ctx context.Context, in *In) (out Out, err error) {
		who, err := request.KnownCaller(ctx)
		if err != nil {
			return out, err
		}
		if auth, is := any(in).(registryAuth); is {
			if ctx, err = withRegistries(ctx, auth); err != nil {
				return out, err
			}
		}
		return do(ctx, who, in)
	}, descriptions...)
}

// get is query for a route without parameters.
func get[Out any](to api.Route[api.None, Out], need rule, do func(context.Context) (Out, error)) endpoint {
	return query(to, need, func(ctx context.Context, _ *api.None) (Out, error) { return do(ctx) })
}

// ofTask is query for a question about a task.
func ofTask[Out any](to api.Route[api.TaskPath, Out], need rule, do func(ctx context.Context, ref string) (Out, error)) endpoint {
	return query(to, need, func(ctx context.Context, in *api.TaskPath) (Out, error) { return do(ctx, in.Ref) })
}

// changing is act for a route that changes a task and answers with the task.
func changing[B any](r *Runner, to api.Route[api.OnTask[B], api.Task], need rule, do func(context.Context, request.Caller, string, B) (*record.Record, error)) endpoint {
	return act(to, need, func(ctx context.Context, who request.Caller, in *api.OnTask[B]) (api.Task, error) {
		rec, err := do(ctx, who, in.Ref, in.Body)
		if err != nil {
			return api.Task{}, err
		}
		return r.Task(ctx, rec.ID().String())
	})
}

func withoutNote(do func(context.Context, request.Caller, string) (*record.Record, error)) func(context.Context, request.Caller, string, api.Note) (*record.Record, error) {
	return func(ctx context.Context, who request.Caller, ref string, _ api.Note) (*record.Record, error) {
		return do(ctx, who, ref)
	}
}

// closing is act for a route that closes something and answers with the present state.
func closing[Out any](to api.Route[api.With[api.CloseRequest], Out], need rule, do func(context.Context, request.Caller, api.CloseRequest) error, then func(context.Context) (Out, error)) endpoint {
	return act(to, need, func(ctx context.Context, who request.Caller, in *api.With[api.CloseRequest]) (out Out, err error) {
		if err := do(ctx, who, in.Body); err != nil {
			return out, err
		}
		return then(ctx)
	})
}

// drop is act for a route that removes something and answers nothing.
func drop[In any](to api.Route[In, api.None], need rule, do func(context.Context, request.Caller, *In) error) endpoint {
	return serve(to, need, func(ctx context.Context, in *In) (*struct{}, error) {
		who, err := request.KnownCaller(ctx)
		if err != nil {
			return nil, err
		}
		return nil, do(ctx, who, in)
	}, func(_ huma.API, op *huma.Operation) { op.DefaultStatus = http.StatusNoContent })
}

// decoded describes a request with a body that [httplimit.LimitRequests] has decoded and validated.
func decoded(_ huma.API, op *huma.Operation) { op.SkipValidateBody = true }

// events describes an answer of server-sent events. Such answers do not use huma's package
// sse, because a stream must be able to answer 404 before it begins.
func events(text string) description {
	return func(_ huma.API, op *huma.Operation) {
		op.Responses = map[string]*huma.Response{"200": {Description: "server-sent events: " + text, Content: map[string]*huma.MediaType{"text/event-stream": {}}}}
	}
}

var (
	taskEvents   = events("`task` (a Task) and `log` (a LogLine)")
	helperEvents = events("`log` (a LogLine), and `end` after the last")
)

func liveEvents(a huma.API, op *huma.Operation) {
	events("`live` (a Live)")(a, op)
	op.Responses["200"].Content["text/event-stream"].Schema = a.OpenAPI().Components.Schemas.Schema(typeOf[api.Live](), true, "Live")
}

// stream returns the endpoint of a route that answers with events.
func stream[In any](to api.Route[In, api.Stream], need rule, answers description, do func(context.Context, *In) (*huma.StreamResponse, error)) endpoint {
	return serve(to, need, do, answers)
}

// upgraded returns the endpoint of a route that takes over the connection.
func upgraded[In any](to api.Route[In, api.Stream], need rule, do func(context.Context, *In) (*huma.StreamResponse, error)) endpoint {
	return serve(to, need, do, func(_ huma.API, op *huma.Operation) {
		op.Responses = map[string]*huma.Response{"101": {Description: "frames of " + api.TerminalProtocol}}
	})
}

// door refuses a request about the server if its caller may not make it. Requests about a
// task are refused where the task is found.
func (r *Runner) door(a huma.API, need rule) middleware {
	return func(ctx huma.Context, next func(huma.Context)) {
		who, ok := request.CallerFrom(ctx.Context())
		if ok && len(need.acts) > 0 && need.acts[0].OnServer() {
			if err := r.authz.CheckServer(who, need.acts[0]); err != nil {
				_ = huma.WriteErr(a, ctx, http.StatusForbidden, err.Error()) // if it fails, nobody reads the answer
				return
			}
		}
		next(ctx)
	}
}
