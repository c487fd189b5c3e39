//go:build cgo

package nvml

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carma/internal/units"

	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
)

// TestStuck: if a driver hangs, readings fail at their time limit, and pending calls do not
// accumulate. The driver is used again when it answers.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack(dgxa100.New(), false)
		s := r.open(t, Options{})
		sampled(t, s)
		hang := make(chan struct{})
		r.change(func() { r.hang = hang })
		goroutines := runtime.NumGoroutine()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := s.Sample(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "driver does not answer") {
				t.Fatalf("sample: %v", err)
			}
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		r.change(func() { r.hang, r.gpus[0].used = nil, 7*gib })
		close(hang)
		synctest.Wait()
		if got := sampled(t, s)[0]; got.Used != 7*units.GiB {
			t.Errorf("sample %+v", got)
		}
	})
}

// TestCloseStuck: Close returns although a call hangs.
func TestCloseStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack(dgxa100.New(), false)
		s := r.open(t, Options{})
		hang := make(chan struct{})
		r.change(func() { r.hang = hang })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Sample(ctx); err == nil {
			t.Fatal("a driver that hangs has answered")
		}
		if err := s.Close(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		close(hang)
	})
}

// TestStuckAtStart: Open returns at its deadline although a call hangs.
func TestStuckAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRack(dgxa100.New(), false)
		r.hang = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Open(ctx, r.Server, Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("open: %v", err)
		}
		close(r.hang)
	})
}

func TestAtOnce(t *testing.T) {
	r := newRack(dgxh100.New(), true)
	s := r.open(t, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				r.after(time.Second)
				if i == 0 {
					r.xid(1, 48)
					s.Notes()
				}
				if got, err := s.Sample(t.Context()); err != nil || len(got) != 8 {
					t.Errorf("%d samples, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}
