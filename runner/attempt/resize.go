package attempt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"carma/containers"
	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/runner/engine"
)

// resizing carries out the requests to set the limits of an attempt's container to the host
// resources allocated to it.
type resizing struct {
	*core
	asked chan struct{} // holds one token: the allocation has changed

	mu   sync.Mutex
	want int // number of requests
	done int // number of the last request that is carried out
	err  error
	over chan struct{} // closed when done changes
}

func newResizing(c *core) *resizing {
	return &resizing{core: c, asked: make(chan struct{}, 1), over: make(chan struct{})}
}

// order asks for the limits to be set. It does not wait.
func (z *resizing) order() {
	z.mu.Lock()
	z.want++
	z.mu.Unlock()
	select {
	case z.asked <- struct{}{}:
	default:
	}
}

func (z *resizing) begin() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.want
}

func (z *resizing) end(upTo int, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.done, z.err = upTo, err
	close(z.over)
	z.over = make(chan struct{})
}

// wait returns the result of all requests until now.
func (z *resizing) wait(ctx context.Context) error {
	z.mu.Lock()
	want := z.want
	for z.done < want {
		over := z.over
		z.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil // the resize continues
		}
		z.mu.Lock()
	}
	defer z.mu.Unlock()
	return z.err
}

// resize sets the limits of the container to the current allocation.
func (z *resizing) resize(ctx context.Context, id string) {
	upTo := z.begin()
	failpoint.Hit("resize-limits")
	err := z.setMemory(ctx, id, 0)
	if err == nil {
		err = z.setCPUs(ctx, id)
	}
	if err == nil {
		sub, share := z.booked()
		z.deps.Log.Info().Int64("task", int64(z.launch.Task)).Int64("memory", sub.HostMem).Float64("cpus", sub.CPUs).Stringer("booked", share.Memory).Msg("its limits are set anew")
	}
	z.end(upTo, err)
}

// setMemory sets the memory limit of the container to its share plus more. It refuses a
// limit below the memory in use, because that limit would end the container.
func (z *resizing) setMemory(ctx context.Context, id string, more units.Bytes) error {
	var spec containers.Spec
	sub, share := z.booked()
	z.deps.Settings.Bounds().Bound(&spec, sub, share)
	if spec.Memory == 0 {
		return nil
	}
	to := units.Bytes(spec.Memory) + more
	if used, ok := z.deps.Memory.Now(z.key()); ok && used > to {
		return fmt.Errorf("it uses %s of host memory now, more than %s", used, to)
	}
	return z.limits(ctx, "set the memory of a container", func(ctx context.Context, r containers.Resizer) error {
		return r.SetMemory(ctx, id, int64(to))
	})
}

func (z *resizing) setCPUs(ctx context.Context, id string) error {
	var spec containers.Spec
	sub, share := z.booked()
	z.deps.Settings.Bounds().Bound(&spec, sub, share)
	return z.limits(ctx, "set the processors of a container", func(ctx context.Context, r containers.Resizer) error {
		return r.SetCPUs(ctx, id, spec.CPUs, spec.CPUWeight)
	})
}

func (z *resizing) limits(ctx context.Context, what string, set func(context.Context, containers.Resizer) error) error {
	resizer, can := engine.As[containers.Resizer](z.deps.Driver)
	if !can {
		return errors.New("the limits of its container cannot be changed on " + z.deps.Driver.Name())
	}
	err := engine.Within(ctx, engine.KillLimit, what, func(ctx context.Context) error { return set(ctx, resizer) })
	if err != nil && ctx.Err() == nil {
		z.deps.Log.Warn().Err(err).Int64("task", int64(z.launch.Task)).Msg("the limits of its container could not be set")
	}
	return err
}
