package containers

import (
	"context"
	"sync"
)

type placedKey struct{}

// WithPlaced returns a context for the Start of an [Aborter]. It calls placed, once, when the
// engine has found the container its place and only its image and its program are to come,
// or when the engine says that it has none now.
func WithPlaced(ctx context.Context, placed func()) context.Context {
	return context.WithValue(ctx, placedKey{}, sync.OnceFunc(placed))
}

// Placed calls what [WithPlaced] was given, if it was.
func Placed(ctx context.Context) {
	if placed, ok := ctx.Value(placedKey{}).(func()); ok {
		placed()
	}
}
