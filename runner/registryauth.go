package runner

import (
	"context"
	"net/http"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/request"
)

type registryKey struct{}

// registryAuth is the input of a route with the caller's credentials for registries.
type registryAuth interface {
	Registries() (map[string]containers.Credential, error)
}

// withRegistries adds the caller's credentials for registries to a request's context.
func withRegistries(ctx context.Context, auth registryAuth) (context.Context, error) {
	by, err := auth.Registries()
	if err != nil {
		return nil, request.Errorf(http.StatusBadRequest, "%v", err)
	}
	return context.WithValue(ctx, registryKey{}, pull.Credentials(by)), nil
}

// credentialsFrom returns the caller's credentials for registries.
func credentialsFrom(ctx context.Context) pull.Credentials {
	by, _ := ctx.Value(registryKey{}).(pull.Credentials)
	return by
}

// pullPolicy returns the policy that a task asks for, or the default.
func (r *Runner) pullPolicy(asked string) string {
	if asked != "" {
		return asked
	}
	return r.live().Pull
}

// keepCredentials keeps the submitter's credentials for the tasks whose image could not be
// looked up.
func (r *Runner) keepCredentials(by pull.Credentials, recs []*record.Record) {
	var waiting []int64
	for _, rec := range recs {
		if rec.ImageID == "" && !rec.Submit.Bare() {
			waiting = append(waiting, int64(rec.ID()))
		}
	}
	if len(waiting) == 0 {
		return
	}
	r.pull.Keep(waiting, by, func(task int64) bool {
		rec, _ := r.records.Get(model.TaskID(task))
		return rec != nil && !rec.Task.Phase.Finished()
	})
}
