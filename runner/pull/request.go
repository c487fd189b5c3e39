package pull

import "context"

type credentialsKey struct{}

// WithCredentials returns a context for a request with the caller's credentials for
// registries.
func WithCredentials(ctx context.Context, by Credentials) context.Context {
	return context.WithValue(ctx, credentialsKey{}, by)
}

// CredentialsFrom returns the caller's credentials for registries.
func CredentialsFrom(ctx context.Context) Credentials {
	by, _ := ctx.Value(credentialsKey{}).(Credentials)
	return by
}
