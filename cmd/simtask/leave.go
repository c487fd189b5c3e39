package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"carma/internal/units"
	"carma/runner/gpu/simgpu/client"
)

// leaver lets a task vacate its GPUs on request, through the files described in package
// leave. Copying takes no time here.
type leaver struct {
	dir    string
	orders chan order // the last unhandled order
}

// order is a line from carma: leave N, or return N.
type order struct {
	word string
	n    uint64
}

// lookEvery is the time between two checks for an order.
const lookEvery = 20 * time.Millisecond

// offer offers to vacate, and reads orders until ctx ends. It returns nil if dir is
// empty, because then there are no orders.
func offer(ctx context.Context, dir string) (*leaver, error) {
	if dir == "" {
		return nil, nil
	}
	l := &leaver{dir: dir, orders: make(chan order, 1)}
	if err := l.say("offer", "carma-leave 1"); err != nil {
		return nil, err
	}
	go l.hear(ctx)
	return l, nil
}

func (l *leaver) hear(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for last := (order{}); ; {
		if o, ok := l.read(); ok && o != last {
			last = o
			select {
			case <-l.orders: // replaced by a newer order
			default:
			}
			l.orders <- o
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l *leaver) read() (o order, ok bool) {
	text, err := os.ReadFile(filepath.Join(l.dir, "order"))
	if err != nil {
		return o, false
	}
	n, err := fmt.Sscanf(string(text), "%s %d", &o.word, &o.n)
	return o, n == 2 && err == nil && (o.word == "leave" || o.word == "return")
}

// say replaces a file of the task.
func (l *leaver) say(name, line string) error {
	path := filepath.Join(l.dir, "task", name)
	if err := os.WriteFile(path+".new", []byte(line+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (l *leaver) answer(word string, o order, why string) {
	line := fmt.Sprintf("%s %d", word, o.n)
	if why != "" {
		line += " " + why
	}
	_ = l.say("answer", line) // on an error, carma uses the driver instead
}

// asked returns the channel of orders, or nil if there are none.
func (t *trainer) asked() <-chan order {
	if t.leaver == nil {
		return nil
	}
	return t.leaver.orders
}

// obey vacates the GPUs until the order to return. Meanwhile it frees all memory except
// its CUDA context, and does not train.
func (t *trainer) obey(ctx context.Context, o order) int {
	if o.word != "leave" {
		t.leaver.answer("here", o, "")
		return exitOK
	}
	t.advance()
	var kept []units.Bytes
	for i := range t.client.GPUs() {
		kept = append(kept, max(0, t.client.Held(i)-t.context))
		t.client.Free(i, kept[i])
	}
	t.client.SetLoads(nil)
	t.leaver.answer("left", o, "")
	for {
		select {
		case <-ctx.Done():
			return t.stop(ctx)
		case o = <-t.leaver.orders:
		}
		if o.word == "leave" {
			t.leaver.answer("left", o, "")
			continue
		}
		err := t.takeAgain(ctx, kept)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return t.stop(ctx)
		}
		t.leaver.answer("cannot", o, "the GPU is full")
	}
	if t.training {
		t.client.SetLoads(t.loads)
	}
	t.pass() // does not count the time off the GPUs as training
	t.leaver.answer("here", o, "")
	return exitOK
}

// takeAgain allocates the memory that it had, or nothing if there is no room for all of
// it.
func (t *trainer) takeAgain(ctx context.Context, kept []units.Bytes) error {
	for i, n := range kept {
		err := t.client.Alloc(ctx, i, n)
		if err == nil {
			continue
		}
		if errors.As(err, new(*client.OOMError)) {
			for j := range i {
				t.client.Free(j, kept[j])
			}
		}
		return err
	}
	return nil
}
