package endpoint

import (
	"context"
	"net/http"
	"reflect"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/pull"
	"carma/runner/request"

	"github.com/danielgtaylor/huma/v2"
)

// Endpoint is a request that the daemon answers.
type Endpoint struct {
	Pattern string // method and path, as for [http.ServeMux]
	Rule    Rule
	// register adds it to an API. door is called before the body is read.
	register func(a huma.API, door middleware)
}

type middleware = func(huma.Context, func(huma.Context))

// Description describes a request in the OpenAPI document, and how huma reads it.
type Description func(huma.API, *huma.Operation)

// registryAuth is the input of a route with the caller's credentials for registries.
type registryAuth interface {
	Registries() (map[string]containers.Credential, error)
}

// Serve returns the endpoint of a route whose answer has more than its output. A is
// huma's form of the answer.
func Serve[In, Out, A any](to api.Route[In, Out], need Rule, do func(context.Context, *In) (*A, error), descriptions ...Description) Endpoint {
	register := func(a huma.API, door middleware) {
		op := huma.Operation{
			OperationID: to.ID, Method: to.Method, Path: to.Path, Summary: to.Summary, DefaultStatus: http.StatusOK, Middlewares: huma.Middlewares{door},
			BodyReadTimeout: -1, // package httplimit has read it; a limit left on the connection would cancel a request that takes longer
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
	return Endpoint{to.Method + " " + to.Path, need, register}
}

type output[T any] struct{ Body T }

// Query returns the endpoint of a route that is also answered if the caller is not known.
func Query[In, Out any](to api.Route[In, Out], need Rule, do func(context.Context, *In) (Out, error), descriptions ...Description) Endpoint {
	return Serve(to, need, func(ctx context.Context, in *In) (*output[Out], error) {
		out, err := do(ctx, in)
		return &output[Out]{out}, err
	}, descriptions...)
}

// Act returns the endpoint of a route that is answered to known callers.
func Act[In, Out any](to api.Route[In, Out], need Rule, do func(context.Context, request.Caller, *In) (Out, error), descriptions ...Description) Endpoint {
	return Query(to, need, func(ctx context.Context, in *In) (out Out, err error) {
		who, err := request.KnownCaller(ctx)
		if err != nil {
			return out, err
		}
		if auth, is := any(in).(registryAuth); is {
			by, err := auth.Registries()
			if err != nil {
				return out, request.Errorf(http.StatusBadRequest, "%v", err)
			}
			ctx = pull.WithCredentials(ctx, by)
		}
		return do(ctx, who, in)
	}, descriptions...)
}

// Get is Query for a route without parameters.
func Get[Out any](to api.Route[api.None, Out], need Rule, do func(context.Context) (Out, error)) Endpoint {
	return Query(to, need, func(ctx context.Context, _ *api.None) (Out, error) { return do(ctx) })
}

// OfTask is Query for a question about a task.
func OfTask[Out any](to api.Route[api.TaskPath, Out], need Rule, do func(ctx context.Context, ref string) (Out, error)) Endpoint {
	return Query(to, need, func(ctx context.Context, in *api.TaskPath) (Out, error) { return do(ctx, in.Ref) })
}

// Closing is Act for a route that closes something and answers with the present state.
func Closing[Out any](to api.Route[api.With[api.CloseRequest], Out], need Rule, do func(context.Context, request.Caller, api.CloseRequest) error, then func(context.Context) (Out, error)) Endpoint {
	return Act(to, need, func(ctx context.Context, who request.Caller, in *api.With[api.CloseRequest]) (out Out, err error) {
		if err := do(ctx, who, in.Body); err != nil {
			return out, err
		}
		return then(ctx)
	})
}

// Drop is Act for a route that removes something and answers nothing.
func Drop[In any](to api.Route[In, api.None], need Rule, do func(context.Context, request.Caller, *In) error) Endpoint {
	return Serve(to, need, func(ctx context.Context, in *In) (*struct{}, error) {
		who, err := request.KnownCaller(ctx)
		if err != nil {
			return nil, err
		}
		return nil, do(ctx, who, in)
	}, func(_ huma.API, op *huma.Operation) { op.DefaultStatus = http.StatusNoContent })
}

// Decoded describes a request with a body that package httplimit has decoded and validated.
func Decoded(_ huma.API, op *huma.Operation) { op.SkipValidateBody = true }

// Events describes an answer of server-sent events. Such answers do not use huma's package
// sse, because a stream must be able to answer 404 before it begins.
func Events(text string) Description {
	return func(_ huma.API, op *huma.Operation) {
		op.Responses = map[string]*huma.Response{"200": {Description: "server-sent events: " + text, Content: map[string]*huma.MediaType{"text/event-stream": {}}}}
	}
}

// LiveEvents describes the events of the live view.
func LiveEvents(a huma.API, op *huma.Operation) {
	Events("`live` (a Live)")(a, op)
	op.Responses["200"].Content["text/event-stream"].Schema = a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Live](), true, "Live")
}

// Stream returns the endpoint of a route that answers with events.
func Stream[In any](to api.Route[In, api.Stream], need Rule, answers Description, do func(context.Context, *In) (*huma.StreamResponse, error)) Endpoint {
	return Serve(to, need, do, answers)
}

// Upgraded returns the endpoint of a route that takes over the connection.
func Upgraded[In any](to api.Route[In, api.Stream], need Rule, do func(context.Context, *In) (*huma.StreamResponse, error)) Endpoint {
	return Serve(to, need, do, func(_ huma.API, op *huma.Operation) {
		op.Responses = map[string]*huma.Response{"101": {Description: "frames of " + api.TerminalProtocol}}
	})
}
