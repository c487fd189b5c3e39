//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

var errClosed = errors.New("NVML: closed")

// worker makes all calls of the library, one after the other.
type worker struct {
	calls  chan func()
	quit   chan struct{}
	once   sync.Once
	ended  chan struct{}
	busyAt atomic.Int64 // start of the running call in Unix nanoseconds, or 0
}

func newWorker() *worker {
	w := &worker{calls: make(chan func()), quit: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

func (w *worker) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.quit:
			return
		case call := <-w.calls:
			w.busyAt.Store(time.Now().UnixNano())
			call()
			w.busyAt.Store(0)
		}
	}
}

// ask makes the worker call f and returns the result. If ctx ends first, f continues, its
// result is dropped, and no other call is made before it returns. If ctx ends while the
// worker is busy with another call, f is not called.
func ask[T any](ctx context.Context, w *worker, f func() T) (out T, err error) {
	answer := make(chan T, 1)
	select {
	case <-w.quit:
		return out, errClosed
	default:
	}
	select {
	case w.calls <- func() { answer <- f() }:
	case <-ctx.Done():
		return out, w.hangs(ctx.Err())
	case <-w.quit:
		return out, errClosed
	}
	select {
	case out = <-answer:
		return out, nil
	case <-ctx.Done():
		return out, w.hangs(ctx.Err())
	}
}

// hangs returns the error of a call that took too long. It contains no time, because it
// is compared with the previous error.
func (w *worker) hangs(err error) error {
	if w.busyAt.Load() == 0 {
		return fmt.Errorf("NVML: %w", err)
	}
	return fmt.Errorf("the NVIDIA driver does not answer: look at dmesg; nvidia-smi hangs as well until the driver is reloaded or the machine restarted: %w", err)
}

// closeLimit is the longest wait for the last call; a driver that hangs is abandoned.
const closeLimit = 3 * time.Second

// stop ends the worker after a last call.
func (w *worker) stop(last func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_, err := ask(ctx, w, func() struct{} { last(); return struct{}{} })
	w.once.Do(func() { close(w.quit) })
	if errors.Is(err, errClosed) {
		return nil
	}
	if err == nil {
		<-w.ended
	}
	return err
}
