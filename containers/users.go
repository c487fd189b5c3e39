package containers

import (
	"context"
	"errors"
)

// Namespaced is a driver whose engine has namespaces, in which containers are apart.
type Namespaced interface {
	// Namespace is the driver's own: containers that name none are there.
	Namespace() string
	// Serves reports whether containers may be made in a namespace.
	Serves(namespace string) bool
	// Served lists all namespaces in which they may, or is nil if in any.
	Served() []string
}

// Subject is a user as an engine that has its own users knows them.
type Subject struct {
	Name   string
	ID     string // of this user and no later one of the same name; may be empty
	Groups []string
	Extra  map[string][]string
}

// Access is an operation that a user may do in an engine, in its words: the verb, and its
// object.
type Access struct {
	Verb, Group, Resource, Subresource string
	Namespace                          string
}

// ErrToken: a token is nobody's.
var ErrToken = errors.New("the token is not valid")

// Reviewer is a driver whose engine knows users and their rights. Both methods wrap
// [ErrUnavailable] if the engine does not answer.
type Reviewer interface {
	// Review returns the owner of a token; the error wraps [ErrToken] if there is none.
	Review(ctx context.Context, token string) (Subject, error)
	// Allowed reports whether a user may do something.
	Allowed(ctx context.Context, who Subject, what Access) (bool, error)
}
