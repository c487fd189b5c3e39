package containers

import (
	"context"
	"errors"
)

// Namespaced is a driver whose engine separates containers by namespace.
type Namespaced interface {
	// Namespace returns the driver's own namespace, for containers that name none.
	Namespace() string
	// Serves reports whether containers may be made in a namespace.
	Serves(namespace string) bool
	// Served lists the namespaces in which containers may be made, or returns nil if all are
	// allowed.
	Served() []string
}

// Subject is a user of an engine that has its own users.
type Subject struct {
	Name   string
	ID     string // id of this user, never reused for the same name; may be empty
	Groups []string
	Extra  map[string][]string
}

// Access is an operation in an engine for which a user needs permission: the engine's
// verb and its object.
type Access struct {
	Verb, Group, Resource, Subresource string
	Namespace                          string
}

// ErrToken means that a token belongs to nobody.
var ErrToken = errors.New("the token is not valid")

// Reviewer is a driver whose engine manages users and their rights. Both methods wrap
// [ErrUnavailable] if the engine does not answer.
type Reviewer interface {
	// Review returns the owner of a token; the error wraps [ErrToken] if there is none.
	Review(ctx context.Context, token string) (Subject, error)
	// Allowed reports whether a user may do something.
	Allowed(ctx context.Context, who Subject, what Access) (bool, error)
}
