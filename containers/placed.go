package containers

import (
	"context"
	"sync"
)

type placedKey struct{}

// WithPlaced returns a context for the Start of an [Aborter]. Start calls placed once:
// when the engine has placed the container and only has to fetch its image and start its
// program, or when the engine reports that it has no place now.
func WithPlaced(ctx context.Context, placed func()) context.Context {
	return context.WithValue(ctx, placedKey{}, sync.OnceFunc(placed))
}

// Placed calls the function given to [WithPlaced], if any.
func Placed(ctx context.Context) {
	if placed, ok := ctx.Value(placedKey{}).(func()); ok {
		placed()
	}
}
