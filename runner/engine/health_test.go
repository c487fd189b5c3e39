package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
	"carma/containers/containerstest"

	"github.com/rs/zerolog"
)

// TestRefusalThatEnds: an engine first refuses to follow a container, and then follows it.
// Other calls are accepted at once, and do not wait until that container ends.
func TestRefusalThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		e := New(containerstest.NewFake(), zerolog.Nop())
		if up, why := e.Probe(ctx); !up {
			t.Fatal(why)
		}
		calls, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			_, _ = e.Retry(ctx, func() error {
				if calls++; calls <= refusedAfter {
					return fmt.Errorf("read logs: %w", containers.ErrUnavailable)
				}
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		time.Sleep((refusedAfter + 1) * pingEveryDown)
		if up, why := e.Probe(ctx); up {
			t.Errorf("after %d refusals it takes orders: %s", calls, why)
		}
		time.Sleep(acceptedAfter)
		if up, why := e.Probe(ctx); !up {
			t.Errorf("while it follows the container: %s", why)
		}
		cancel()
		<-done
		if e.refused != 0 {
			t.Errorf("%d calls count as refused", e.refused)
		}
	})
}
