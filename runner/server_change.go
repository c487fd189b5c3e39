package runner

import (
	"context"
	"net/http"

	"carma/runner/api"

	"github.com/danielgtaylor/huma/v2"
)

// addChangeRoutes adds what changes tasks and GPUs.
func (r *Runner) addChangeRoutes(a huma.API) {
	changing(r, a, "update", http.MethodPatch, "", "Change a task that has not ended", r.Update)
	changing(r, a, "hold", http.MethodPost, "/hold", "Keep a waiting task from being launched", r.Hold)
	changing(r, a, "release", http.MethodPost, "/release", "Let a held task go on",
		func(ctx context.Context, who Caller, ref string, _ api.Note) (*Record, error) {
			return r.Release(ctx, who, ref)
		})
	changing(r, a, "suspend", http.MethodPost, "/suspend", "Take a running task off its GPUs without ending it", r.Suspend)
	changing(r, a, "resume", http.MethodPost, "/resume", "Let a suspended task come back",
		func(ctx context.Context, who Caller, ref string, _ api.Note) (*Record, error) {
			return r.Resume(ctx, who, ref)
		})
	changing(r, a, "requeue", http.MethodPost, "/requeue", "Stop a running task and put it back into the queue", r.Requeue)
	changing(r, a, "move", http.MethodPost, "/move", "Move a waiting task before or behind those of its owner", r.Move)
	changing(r, a, "pin", http.MethodPost, "/pin", "Say which GPUs a task goes to", r.Pin)
	r.addReservationRoutes(a)
	huma.Register(a, operation("scores", http.MethodGet, "/v1/estimates/scores", "How well memory was estimated for tasks that have ended well"),
		func(ctx context.Context, _ *struct{}) (*output[api.Scores], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			return answer(r.Scores(ctx, who))
		})
	huma.Register(a, operation("used", http.MethodGet, "/v1/used", "What removed tasks have used, by day"),
		func(ctx context.Context, in *struct {
			Since string `query:"since" doc:"a day, 2006-01-02"`
			Until string `query:"until" doc:"a day, 2006-01-02; what is before it"`
		}) (*output[[]api.Used], error) {
			return answer(r.Used(ctx, in.Since, in.Until))
		})
	huma.Register(a, operation("quotas", http.MethodGet, "/v1/quotas", "What users and groups have, and may have"),
		func(ctx context.Context, in *struct {
			Names []string `query:"name,explode" maxItems:"100" doc:"users, or @groups, of this machine, who are listed even if carma knows nothing of them"`
		}) (*output[[]api.Account], error) {
			who, _ := callerFrom(ctx)
			return answer(r.Quotas(ctx, who, in.Names))
		})
	closing(a, "close-gpus", "/v1/gpus/close", "Drain GPUs, or open them again", r.CloseGPUs, r.ListGPUs)
	closing(a, "pause", "/v1/launching", "Pause launching, or let it go on", r.PauseLaunching, r.Info)
}

// changing adds a route that changes one task and answers with it.
func changing[B any](r *Runner, a huma.API, id, method, path, summary string, do func(context.Context, Caller, string, B) (*Record, error)) {
	huma.Register(a, operation(id, method, "/v1/tasks/{task}"+path, summary),
		func(ctx context.Context, in *struct {
			TaskRef
			Body B
		}) (*output[api.Task], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			rec, err := do(ctx, who, in.Ref, in.Body)
			if err != nil {
				return nil, problem(err)
			}
			return answer(r.Task(ctx, rec.ID().String()))
		})
}

// closing adds a route that closes something and answers with how things are.
func closing[T any](a huma.API, id, path, summary string, do func(context.Context, Caller, api.CloseRequest) error, then func(context.Context) (T, error)) {
	huma.Register(a, operation(id, http.MethodPost, path, summary),
		func(ctx context.Context, in *struct{ Body api.CloseRequest }) (*output[T], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			if err := do(ctx, who, in.Body); err != nil {
				return nil, problem(err)
			}
			return answer(then(ctx))
		})
}

// addReservationRoutes adds what makes, lists and ends reservations.
func (r *Runner) addReservationRoutes(a huma.API) {
	huma.Register(a, operation("reservations", http.MethodGet, "/v1/reservations", "What is reserved, the earliest first"),
		func(ctx context.Context, _ *struct{}) (*output[[]api.Reservation], error) {
			return answer(r.Reservations(ctx))
		})
	huma.Register(a, operation("reserve", http.MethodPost, "/v1/reservations", "Keep GPUs for a user or a group for a time"),
		func(ctx context.Context, in *struct{ Body api.ReserveRequest }) (*output[api.Reservation], error) {
			who, ok := callerFrom(ctx)
			if !ok {
				return nil, huma.Error403Forbidden(callerUnknown)
			}
			return answer(r.Reserve(ctx, who, in.Body))
		})
	end := operation("unreserve", http.MethodDelete, "/v1/reservations/{id}", "End a reservation")
	end.DefaultStatus = http.StatusNoContent
	huma.Register(a, end, func(ctx context.Context, in *struct {
		ID int `path:"id"`
	}) (*struct{}, error) {
		who, ok := callerFrom(ctx)
		if !ok {
			return nil, huma.Error403Forbidden(callerUnknown)
		}
		if err := r.Unreserve(ctx, who, in.ID); err != nil {
			return nil, problem(err)
		}
		return nil, nil
	})
}
