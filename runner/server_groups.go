package runner

import (
	"context"
	"net/http"

	"carma/runner/api"

	"github.com/danielgtaylor/huma/v2"
)

// maxSubmission is the most bytes of a submission of several tasks.
const maxSubmission = 16 << 20

// GroupRef is the path parameter that names a group; exported because huma
// fills embedded structs only then.
type GroupRef struct {
	Name string `path:"group" doc:"a group's name"`
}

// groupPage is one page of a group.
type groupPage struct {
	Next int64 `header:"Carma-Next" doc:"there are more: ask with after and this number; absent or 0: that was all"`
	Body []api.Task
}

func (r *Runner) addGroupRoutes(a huma.API) {
	large := func(id, path, summary string) huma.Operation {
		op := operation(id, http.MethodPost, path, summary)
		op.SkipValidateBody = true // [modest] has, and has decoded it
		return op
	}
	huma.Register(a, large("submit-all", "/v1/submissions", "Submit several tasks, all or none; they are durable when this answers"),
		func(ctx context.Context, in *struct {
			RegistryAuth
			Body api.Submission
		}) (*output[api.SubmittedAll], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			ctx, err := in.within(ctx)
			if err != nil {
				return nil, err
			}
			return answer(r.SubmitAll(ctx, who, submissionFrom(ctx)))
		})
	huma.Register(a, large("preview", "/v1/submissions/preview", "What would become of a submission now; nothing is submitted"),
		func(ctx context.Context, in *struct {
			RegistryAuth
			Body api.Submission
		}) (*output[api.Preview], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			ctx, err := in.within(ctx)
			if err != nil {
				return nil, err
			}
			return answer(r.Preview(ctx, who, submissionFrom(ctx)))
		})
	huma.Register(a, operation("group", http.MethodGet, "/v1/groups/{group}", "The tasks of a group, in order of number"),
		func(ctx context.Context, in *struct {
			GroupRef
			Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"at most so many on one page; 0: 1000"`
			After int64 `query:"after" minimum:"0" doc:"only tasks with higher numbers: the next page"`
		}) (*groupPage, error) {
			list, next, err := r.Group(ctx, in.Name, api.ListOptions{Limit: in.Limit, After: in.After})
			if err != nil {
				return nil, problem(err)
			}
			return &groupPage{Next: next, Body: list}, nil
		})
	huma.Register(a, operation("stop-group", http.MethodPost, "/v1/groups/{group}/stop", "Stop the unfinished tasks of a group"),
		func(ctx context.Context, in *struct {
			GroupRef
			Body api.StopRequest
		}) (*output[api.Stopped], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			return answer(r.StopGroup(ctx, who, in.Name, in.Body))
		})
}
