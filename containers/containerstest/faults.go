package containerstest

import (
	"context"
	"errors"
	"fmt"

	"carma/containers"
)

// Op names a method of the driver.
type Op string

// The methods.
const (
	OpPing   Op = "ping"
	OpImage  Op = "image"
	OpPull   Op = "pull"
	OpImport Op = "import"
	OpCreate Op = "create"
	OpStart  Op = "start"
	OpWait   Op = "wait"
	OpLogs   Op = "logs"
	OpSignal Op = "signal"
	OpKill   Op = "kill"
	OpRemove Op = "remove"
	OpList   Op = "list"

	OpAttached Op = "attached"
	OpPark     Op = "park"
	OpAttach   Op = "attach"
	OpExec     Op = "exec"

	OpMemory Op = "memory"
	OpCPUs   Op = "cpus"
	OpClose  Op = "close"
)

type fault struct {
	err  error
	done bool // the call takes effect nevertheless
	hang bool // the call waits until its context ends
}

// FailNext makes the next call of op fail with err and have no effect.
func (f *Fake) FailNext(op Op, err error) { f.addFault(op, fault{err: err}) }

// FailAll makes every call of op fail with err and have no effect. A nil err ends this.
func (f *Fake) FailAll(op Op, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		f.broken = map[Op]error{}
	}
	f.broken[op] = err
}

// HangNext makes the next call of op hang until its context ends. The call has no
// effect.
func (f *Fake) HangNext(op Op) { f.addFault(op, fault{hang: true}) }

// IgnoreNext makes the next call of op succeed without effect, like killing a
// process that is stuck in the kernel. It applies to Signal and Kill.
func (f *Fake) IgnoreNext(op Op) { f.addFault(op, fault{err: errIgnored}) }

var errIgnored = errors.New("ignored")

// Freeze makes the engine hang: every call waits until its context ends or [Fake.Thaw] is
// called. Containers continue.
func (f *Fake) Freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.frozen == nil {
		f.frozen = make(chan struct{})
	}
}

// Thaw makes a hanging engine continue.
func (f *Fake) Thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.frozen != nil {
		close(f.frozen)
		f.frozen = nil
	}
}

// LoseNext makes the next call of op take effect but return ErrUnavailable, as if the
// answer had been lost. It applies to Create, Start, Signal, Kill, Remove and Pull.
func (f *Fake) LoseNext(op Op) {
	err := fmt.Errorf("%s: %w: the answer was lost", op, containers.ErrUnavailable)
	f.addFault(op, fault{err: err, done: true})
}

func (f *Fake) addFault(op Op, flt fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[op] = append(f.faults[op], flt)
}

// Calls returns how often op was called, failed calls included.
func (f *Fake) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

// Down makes the engine unreachable: every call fails with ErrUnavailable, including
// waiting ones. Containers continue.
func (f *Fake) Down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !isClosed(f.down) {
		close(f.down)
	}
}

// Up makes the engine answer again.
func (f *Fake) Up() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if isClosed(f.down) {
		f.down = make(chan struct{})
	}
}

// End ends a running container with the given exit, like a kill from outside: by the
// kernel when memory runs out, or by an engine that shuts down. End fills in its times.
// It reports whether the container ran. It also works while the engine is down.
func (f *Fake) End(id string, exit containers.Exit) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.containers[id]
	return c != nil && c.end(exit)
}

// Relabel changes the labels of all containers, as if another program had made
// them.
func (f *Fake) Relabel(change func(labels map[string]string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		change(c.spec.Labels)
	}
}

// call counts a call and returns the injected fault. If err is set, the call fails at
// once. If lost is set, it fails after taking effect.
func (f *Fake) call(ctx context.Context, op Op) (lost, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[op]++
	for f.frozen != nil && ctx.Err() == nil {
		f.hang(ctx, f.frozen)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", op, ctx.Err())
	}
	if isClosed(f.down) {
		return nil, unavailable(op)
	}
	if err := f.broken[op]; err != nil {
		return nil, err
	}
	queue := f.faults[op]
	if len(queue) == 0 {
		return nil, nil
	}
	f.faults[op] = queue[1:]
	switch {
	case queue[0].hang:
		f.hang(ctx, nil)
		return nil, fmt.Errorf("%s: %w", op, ctx.Err())
	case queue[0].done:
		return queue[0].err, nil
	}
	return nil, queue[0].err
}

// hang waits until the channel until is closed or ctx ends. The caller holds the mutex;
// hang unlocks it meanwhile.
func (f *Fake) hang(ctx context.Context, until <-chan struct{}) {
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-until:
	case <-ctx.Done():
	}
}

func unavailable(op Op) error {
	return fmt.Errorf("%s: %w: the fake engine is down", op, containers.ErrUnavailable)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
