package containerstest

import (
	"context"
	"slices"
	"testing"
	"time"

	"carma/containers"
)

// SetMemory implements [containers.Resizer]. Nothing holds a program to it.
func (f *Fake) SetMemory(ctx context.Context, id string, bytes int64) error {
	lost, err := f.call(ctx, OpMemory)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil && c.state == containers.StateRunning {
		c.memory = append(c.memory, bytes)
	}
	return lost
}

// Memory returns the limits of memory that a container was given while it ran.
func (f *Fake) Memory(name string) []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		if c.spec.Name == name {
			return slices.Clone(c.memory)
		}
	}
	return nil
}

// Memory checks that a running container can be given more memory. It is not part of
// [Suite]: the fake has no kernel.
func Memory(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d := newDriver(t)
	t.Cleanup(func() { _ = d.Close() })
	s := &suite{T: t, d: d, ctx: ctx, img: img, newDriver: newDriver, mark: "memory"}
	resizer, can := d.(containers.Resizer)
	if !can {
		t.Fatalf("%s cannot change the memory of a container", d.Name())
	}
	for _, more := range []int64{0, 512 << 20} {
		spec := s.spec("out:ready", "await", "hog:128")
		spec.Memory = 32 << 20
		id := s.startSpec(spec)
		s.follow(id).until("ready")
		for range 2 { // it may be repeated
			if more == 0 {
				break
			}
			if err := resizer.SetMemory(ctx, id, more); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Signal(ctx, id); err != nil {
			t.Fatal(err)
		}
		if exit := s.wait(id); (exit.Code == 0) != (more > 0) {
			t.Errorf("with a limit of %d bytes set: exit = %+v", more, exit)
		}
		if err := resizer.SetMemory(ctx, id, 64<<20); err != nil {
			t.Errorf("of one that has ended: %v", err)
		}
	}
	if err := resizer.SetMemory(ctx, "none-of-this-name", 64<<20); err != nil {
		t.Errorf("of one that is gone: %v", err)
	}
}
