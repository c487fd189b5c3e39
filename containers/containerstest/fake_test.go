package containerstest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
)

func newFake(t *testing.T, run Script) *Fake {
	f := NewFake()
	f.AddImage("i", Image{Run: run})
	t.Cleanup(f.Shutdown)
	return f
}

func start(t *testing.T, f *Fake, name string) string {
	t.Helper()
	id, err := f.Create(t.Context(), containers.Spec{Name: name, Image: "i"})
	if err == nil {
		err = f.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func untilStopped(ctx context.Context, p *Process) int {
	p.Out("started %s", p.Spec.Name)
	<-ctx.Done()
	p.Err("stopping")
	return 5
}

func TestFakeDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, untilStopped)
		defer f.Shutdown()
		id := start(t, f, "job")
		waited, logged := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := f.Wait(t.Context(), id)
			waited <- err
		}()
		go func() {
			logged <- f.Logs(t.Context(), id, time.Time{}, true, func(time.Time, containers.Stream, []byte, bool) {})
		}()
		synctest.Wait() // both hang
		f.Down()
		for _, err := range []error{<-waited, <-logged, f.Start(t.Context(), id), f.Signal(t.Context(), id), f.Kill(t.Context(), id)} {
			if !errors.Is(err, containers.ErrUnavailable) {
				t.Errorf("while down: %v, want ErrUnavailable", err)
			}
		}
		f.Up()
		if list, err := f.List(t.Context(), nil); err != nil || len(list) != 1 || list[0].State != containers.StateRunning {
			t.Errorf("List = %v, %v, want the container running", list, err)
		}
	})
}

func TestFakeFaults(t *testing.T) {
	f := newFake(t, nil)
	ctx, boom := t.Context(), errors.New("boom")
	spec := containers.Spec{Name: "job", Image: "i", Identity: map[string]string{"job": "1"}}
	f.FailNext(OpCreate, boom)
	if _, err := f.Create(ctx, spec); !errors.Is(err, boom) {
		t.Errorf("Create = %v, want boom", err)
	}
	if list, _ := f.List(ctx, nil); len(list) != 0 {
		t.Errorf("a failed Create made %v", list)
	}
	f.LoseNext(OpCreate)
	if _, err := f.Create(ctx, spec); !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("Create = %v, want ErrUnavailable", err)
	}
	list, _ := f.List(ctx, nil)
	if len(list) != 1 {
		t.Fatalf("a Create whose answer was lost made %v", list)
	}
	if id, err := f.Create(ctx, spec); err != nil || id != list[0].ID {
		t.Errorf("Create = %q, %v, want the existing %q", id, err, list[0].ID)
	}
	if got := f.Calls(OpCreate); got != 3 {
		t.Errorf("%d calls of Create, want 3", got)
	}
}

func TestFakeEnd(t *testing.T) {
	f := newFake(t, untilStopped)
	id := start(t, f, "job")
	if !f.End(id, containers.Exit{Code: 137, OOMKilled: true}) || f.End(id, containers.Exit{}) {
		t.Error("End must report the first call only")
	}
	exit, err := f.Wait(t.Context(), id)
	if err != nil || exit.Code != 137 || !exit.OOMKilled || exit.Started.IsZero() || exit.Finished.IsZero() {
		t.Errorf("Wait = %+v, %v", exit, err)
	}
}

func TestFakeStopGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(ctx context.Context, p *Process) int {
			<-ctx.Done()
			select {
			case <-time.After(time.Minute): // saves a checkpoint
				return 0
			case <-p.Killed:
				return 1
			}
		})
		defer f.Shutdown()
		for grace, want := range map[time.Duration]int{30 * time.Second: 137, 90 * time.Second: 0} {
			id := start(t, f, grace.String())
			if err := f.Signal(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			time.Sleep(grace)
			if err := f.Kill(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if exit, err := f.Wait(t.Context(), id); err != nil || exit.Code != want {
				t.Errorf("grace %v: %+v, %v, want code %d", grace, exit, err, want)
			}
		}
	})
}

func TestFakeShutdown(t *testing.T) {
	before := runtime.NumGoroutine()
	f := newFake(t, func(_ context.Context, p *Process) int {
		<-p.Killed // ignores the stop signal
		return 0
	})
	for _, name := range []string{"one", "two", "three"} {
		start(t, f, name)
	}
	f.Shutdown()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
