package runner

import (
	"context"
	"net/http"
	"slices"
	"time"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/rights"

	"github.com/danielgtaylor/huma/v2"
)

// SuiteRef is the path parameter that names a suite; exported because huma
// fills embedded structs only then.
type SuiteRef struct {
	Suite string `path:"suite" doc:"a suite's name; names are each user's own"`
}

// addSuiteRoutes adds what is asked about the helpers of suites.
func (r *Runner) addSuiteRoutes(a huma.API) {
	huma.Register(a, operation("put-suite", http.MethodPut, "/v1/suites/{suite}", "Bring the helpers, networks and volumes of a suite up; durable when this answers"),
		func(ctx context.Context, in *struct {
			SuiteRef
			RegistryAuth
			Check bool `query:"check" doc:"only look whether it could"`
			Body  api.Suite
		}) (*output[api.SuiteState], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			ctx, err := in.within(ctx)
			if err != nil {
				return nil, err
			}
			return answer(r.PutSuite(ctx, who, in.Suite, in.Body, in.Check))
		})
	huma.Register(a, operation("suite", http.MethodGet, "/v1/suites/{suite}", "How the helpers of a suite are"),
		func(ctx context.Context, in *struct {
			SuiteRef
			Ended bool `query:"ended" doc:"of which helpers output is kept after its end"`
		}) (*output[api.SuiteState], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			if in.Ended {
				return answer(r.EndedSuite(who, in.Suite))
			}
			o, err := r.suiteOf(who, rights.SeeSuite, in.Suite)
			if err != nil {
				return nil, problem(err)
			}
			return answer(r.suiteState(ctx, o, in.Suite))
		})
	huma.Register(a, operation("drop-suite", http.MethodDelete, "/v1/suites/{suite}", "Take the helpers and networks of a suite down"),
		func(ctx context.Context, in *struct {
			SuiteRef
			Volumes bool  `query:"volumes" doc:"its volumes too, with what is in them"`
			Grace   int64 `query:"grace" minimum:"0" doc:"nanoseconds between stop signal and kill; 0: as the helpers say"`
		}) (*output[api.SuiteRemoved], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			o, err := r.suiteOf(who, rights.DropSuite, in.Suite)
			if err == nil && in.Volumes {
				err = r.authorizeSuite(who, rights.DropVolumes, rights.Owner{UID: o.UID, Name: o.Name}, in.Suite)
			}
			if isNotFound(err) { // its volumes may be left
				o, err = ownerOf(who), nil
			}
			if err != nil {
				return nil, problem(err)
			}
			removed, err := r.helpers.Down(ctx, o, in.Suite, in.Volumes, time.Duration(in.Grace))
			return answer(removed, refusedHelpers(err))
		})
	logs := operation("helper-logs", http.MethodGet, "/v1/suites/{suite}/helpers/{helper}/logs", "The output of a helper")
	logs.Responses = map[string]*huma.Response{"200": {
		Description: "server-sent events: `log` (a LogLine), and `end` after the last",
		Content:     map[string]*huma.MediaType{"text/event-stream": {}},
	}}
	huma.Register(a, logs, func(ctx context.Context, in *struct {
		SuiteRef
		Helper string `path:"helper" doc:"as the suite's state names it: suite, helper and number"`
		Follow bool   `query:"follow" doc:"go on until it is gone or has ended for good"`
		Tail   int    `query:"tail" minimum:"0" maximum:"100000" doc:"only the last lines"`
	}) (*huma.StreamResponse, error) {
		who, ok := callerFrom(ctx)
		if !ok {
			return nil, huma.Error403Forbidden(callerUnknown)
		}
		opt := api.LogOptions{Follow: in.Follow, Tail: in.Tail}
		o, err := r.suiteOf(who, rights.HelperOutput, in.Suite)
		if isNotFound(err) {
			run, wrong := r.helperOut.find(who, rights.HelperOutput, in.Suite)
			if !isNotFound(wrong) {
				err = wrong
			}
			if wrong == nil && slices.Contains(run.Names, in.Helper) {
				return sending(func(_ context.Context, s *sender) error { return r.streamEnded(s, run, in.Helper, opt) }), nil
			}
		}
		if err == nil {
			err = refusedHelpers(r.helpers.Known(o, in.Suite, in.Helper))
		}
		if err != nil {
			return nil, problem(err)
		}
		return sending(func(ctx context.Context, s *sender) error {
			return r.streamHelperLogs(ctx, s, o, in.Suite, in.Helper, opt)
		}), nil
	})
}

// lineSink makes lines of the API of a container's output.
func (r *Runner) lineSink(send func(api.LogLine)) containers.LogSink {
	names := map[containers.Stream]string{containers.Stdout: "stdout", containers.Stderr: "stderr", containers.Missing: "carma"}
	return func(at time.Time, stream containers.Stream, line []byte, partial bool) {
		send(api.LogLine{At: r.Clock.FromWall(at).Time(), Attempt: 1, Stream: names[stream], Line: string(line), Partial: partial})
	}
}
