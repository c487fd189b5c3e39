package runner

import (
	"context"
	"net/http"

	"carma/containers"
	"carma/runner/pull"
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
