package containerstest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"carma/containers"
)

func testExitCodes(t *testing.T, s *suite) {
	for arg, want := range map[string]int{"exit:0": 0, "exit:1": 1, "exit:42": 42} {
		id := s.start(arg)
		exit := s.wait(id)
		if exit.Code != want || exit.OOMKilled || exit.Error != "" {
			t.Errorf("%s: %+v", arg, exit)
		}
		if exit.Started.IsZero() || exit.Finished.Before(exit.Started) {
			t.Errorf("%s: from %v to %v", arg, exit.Started, exit.Finished)
		}
		if again := s.wait(id); again != exit {
			t.Errorf("%s: second Wait = %+v, want %+v", arg, again, exit)
		}
		if got := s.state(id); got != containers.StateExited {
			t.Errorf("%s: state = %s, want exited", arg, got)
		}
	}
}

func testWaitBeforeStart(t *testing.T, s *suite) {
	id := s.create(s.spec("exit:5"))
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if exit, err := s.d.Wait(s.ctx, id); err != nil || exit.Code != 5 {
				t.Errorf("Wait = %+v, %v, want code 5", exit, err)
			}
		})
	}
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func testWaitCancelled(t *testing.T, s *suite) {
	id := s.start("out:ready", "block:0")
	ctx, cancel := context.WithCancel(s.ctx)
	s.follow(id).until("ready")
	cancel()
	_, err := s.d.Wait(ctx, id)
	s.failsWith("wait", err, context.Canceled)
	if errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("cancelled wait blames the engine: %v", err)
	}
	if got := s.state(id); got != containers.StateRunning {
		t.Errorf("state = %s, want running", got)
	}
}

// stop stops a container as the daemon does, and returns when it has ended.
func (s *suite) stop(id string, grace time.Duration) {
	s.Helper()
	if err := s.tryStop(id, grace); err != nil && !errors.Is(err, containers.ErrNotFound) {
		s.Errorf("stop: %v", err)
	}
}

func (s *suite) tryStop(id string, grace time.Duration) error {
	if grace > 0 {
		if err := s.d.Signal(s.ctx, id); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(s.ctx, grace)
		_, err := s.d.Wait(ctx, id)
		cancel()
		if err == nil || ctx.Err() == nil {
			return err
		}
	}
	if err := s.d.Kill(s.ctx, id); err != nil {
		return err
	}
	_, err := s.d.Wait(s.ctx, id)
	return err
}

func testStop(t *testing.T, s *suite) {
	id := s.start("out:ready", "block:7")
	s.follow(id).until("ready")
	s.stop(id, time.Minute)
	if got := s.state(id); got != containers.StateExited {
		t.Errorf("state after stop = %s, want exited", got)
	}
	if exit := s.wait(id); exit.Code != 7 || exit.OOMKilled {
		t.Errorf("exit = %+v, want the program's own code 7", exit)
	}
}

func testStopKills(t *testing.T, s *suite) {
	for _, grace := range []time.Duration{0, 300 * time.Millisecond} {
		id := s.start("out:ready", "stubborn")
		s.follow(id).until("ready")
		s.stop(id, grace)
		if exit := s.wait(id); exit.Code != 137 || exit.OOMKilled {
			t.Errorf("grace %v: exit = %+v, want code 137", grace, exit)
		}
	}
}

// testStopMany (finding F1) checks that a program that ignores its stop signal ends
// nevertheless, each time, however short the grace period.
func testStopMany(t *testing.T, s *suite) {
	const n, atOnce = 50, 10
	ids := make(chan string, n)
	for range n {
		ids <- s.create(s.spec("out:ready", "stubborn"))
	}
	close(ids)
	var wg sync.WaitGroup
	for i := range atOnce {
		wg.Go(func() {
			for id := range ids {
				if err := s.d.Start(s.ctx, id); err != nil {
					t.Errorf("start: %v", err)
					continue
				}
				s.follow(id).until("ready") // from here on the program ignores the signal
				if err := s.tryStop(id, time.Duration(i+1)*time.Millisecond); err != nil {
					t.Errorf("stop: %v", err)
					continue
				}
				if exit, err := s.d.Wait(s.ctx, id); err != nil || exit.Code != 137 {
					t.Errorf("exit = %+v, %v, want code 137", exit, err)
				}
				_ = s.d.Remove(s.ctx, id)
			}
		})
	}
	wg.Wait()
}

// testStopIdle checks that stopping a container that does not run changes nothing.
func testStopIdle(t *testing.T, s *suite) {
	quiet := func(when, id string) {
		t.Helper()
		if err := errors.Join(s.d.Signal(s.ctx, id), s.d.Kill(s.ctx, id)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	id := s.create(s.spec("exit:3"))
	quiet("not started", id)
	if err := s.d.Start(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	if exit := s.wait(id); exit.Code != 3 {
		t.Errorf("exit = %+v, want code 3", exit)
	}
	quiet("ended", id)
	if exit := s.wait(id); exit.Code != 3 {
		t.Errorf("exit = %+v, want code 3", exit)
	}
	if err := s.d.Remove(s.ctx, id); err != nil {
		t.Fatal(err)
	}
	quiet("gone", id)
}

func testRemove(t *testing.T, s *suite) {
	running, exited, created := s.start("stubborn"), s.start("exit:0"), s.create(s.spec())
	s.wait(exited)
	for _, id := range []string{running, exited, created, running, "0123456789ab"} {
		if err := s.d.Remove(s.ctx, id); err != nil {
			t.Errorf("remove %s: %v", id, err)
		}
	}
	if list := s.list(); len(list) != 0 {
		t.Errorf("left over: %v", list)
	}
	again := s.start("stubborn")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.d.Remove(s.ctx, again); err != nil {
				t.Errorf("remove at the same time: %v", err)
			}
		})
	}
	wg.Wait()
}

func testRemoveWaiting(t *testing.T, s *suite) {
	id := s.start("out:ready", "stubborn")
	log := s.follow(id)
	log.until("ready")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := s.d.Wait(s.ctx, id)
		s.failsWith("wait", err, containers.ErrNotFound)
	}()
	if err := s.d.Remove(s.ctx, id); err != nil {
		t.Error(err)
	}
	<-done
	if err := log.end(); err != nil && !errors.Is(err, containers.ErrNotFound) {
		t.Errorf("logs ended with %v", err)
	}
}
