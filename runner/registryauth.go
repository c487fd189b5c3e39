package runner

import (
	"context"
	"net/http"

	"carma/runner/api"
	"carma/runner/pull"

	"github.com/danielgtaylor/huma/v2"
)

// RegistryAuth are the caller's credentials for registries; exported because huma fills
// embedded structs only then.
type RegistryAuth struct {
	Value string `header:"Carma-Registry-Auth" doc:"the caller's credentials for the registries of the images: a JSON object of {username, password, identity_token, registry_token} by registry, in base64 for URLs. They are kept in memory until the images are fetched"`
}

type registryKey struct{}

// within adds the credentials to a request's context.
func (a RegistryAuth) within(ctx context.Context) (context.Context, error) {
	by, err := api.DecodeRegistryAuth(a.Value)
	if err != nil {
		return nil, huma.NewError(http.StatusBadRequest, err.Error())
	}
	return context.WithValue(ctx, registryKey{}, pull.Credentials(by)), nil
}

// credentialsFrom are the caller's credentials for registries.
func credentialsFrom(ctx context.Context) pull.Credentials {
	by, _ := ctx.Value(registryKey{}).(pull.Credentials)
	return by
}
