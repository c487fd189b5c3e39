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
	// Served are all in which they may; nil: in any.
	Served() []string
}

// Subject is a user as an engine that has its own users knows them.
type Subject struct {
	Name   string
	ID     string // of this user and no later one of the same name; may be empty
	Groups []string
	Extra  map[string][]string
}

// Access is something that a user may do in an engine, in its words: the verb, and what
// it is done to.
type Access struct {
	Verb, Group, Resource, Subresource string
	Namespace                          string
}

// ErrToken: a token is nobody's.
var ErrToken = errors.New("the token is not valid")

// Reviewer is a driver whose engine knows users, and what they may do. Both methods
// wrap [ErrUnavailable] if the engine does not answer.
type Reviewer interface {
	// Review tells whose token it is; the error wraps [ErrToken] if it is nobody's.
	Review(ctx context.Context, token string) (Subject, error)
	// Allowed reports whether a user may do something.
	Allowed(ctx context.Context, who Subject, what Access) (bool, error)
}
