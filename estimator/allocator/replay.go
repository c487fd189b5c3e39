package allocator

import (
	"fmt"
	"strings"
)

// Training contains the facts that a trace lacks: the optimizer and the workspaces.
type Training struct {
	// CuBLAS is the size of cuBLAS's workspace in bytes. It is allocated first.
	CuBLAS int64
	// States is the number of tensors that the optimizer keeps for each parameter. Copies
	// is the number that it allocates and frees at every step.
	States, Copies int
	// The workspace of a dense convolution is Activations times the bytes that it
	// reads and writes, plus Weights times the bytes of its weights.
	Activations, Weights float64
}

// maxCalls is the largest number of times that one convolution's workspace is allocated.
const maxCalls = 1000

// Replay runs a trace through a new allocator. It fails with [ErrOutOfMemory]. It
// also fails if the trace allocates a block twice or frees a block that does not
// exist.
func Replay(events []Event, t Training, o Options) (Stats, error) {
	r := replay{a: New(o), t: t, blocks: map[int64]Block{}}
	if _, err := r.a.Alloc(t.CuBLAS); err != nil {
		return r.a.Stats(), err
	}
	for i, e := range events {
		if err := r.event(e); err != nil {
			return r.a.Stats(), fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	return r.a.Stats(), nil
}

type replay struct {
	a      *Allocator
	t      Training
	blocks map[int64]Block
	params []int64
	states bool
}

func (r *replay) event(e Event) error {
	switch e.Op {
	case Parameter:
		r.params = append(r.params, e.Bytes)
	case Allocate:
		if _, twice := r.blocks[e.ID]; twice {
			return fmt.Errorf("block %d is allocated already", e.ID)
		}
		b, err := r.a.Alloc(e.Bytes)
		r.blocks[e.ID] = b
		return err
	case Release:
		b, ok := r.blocks[e.ID]
		if !ok {
			return fmt.Errorf("block %d is not allocated", e.ID)
		}
		delete(r.blocks, e.ID)
		r.a.Free(b)
	case Convolution:
		return r.convolution(e)
	case Mark:
		if strings.HasPrefix(e.Name, "step") {
			return r.optimize()
		}
	}
	return nil
}

func (r *replay) convolution(e Event) error {
	n := int64(r.t.Activations*float64(e.In+e.Out) + r.t.Weights*float64(e.Weight))
	if !e.Dense || n == 0 {
		return nil
	}
	for range min(e.Calls, maxCalls) {
		b, err := r.a.Alloc(n)
		if err != nil {
			return err
		}
		r.a.Free(b)
	}
	return nil
}

func (r *replay) optimize() error {
	if !r.states {
		r.states = true
		for _, p := range r.params {
			for range r.t.States {
				if _, err := r.a.Alloc(p); err != nil {
					return err
				}
			}
		}
	}
	var copies []Block
	for _, p := range r.params {
		for range r.t.Copies {
			b, err := r.a.Alloc(p)
			if err != nil {
				return err
			}
			copies = append(copies, b)
		}
	}
	for _, b := range copies {
		r.a.Free(b)
	}
	return nil
}
