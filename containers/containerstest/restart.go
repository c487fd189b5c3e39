package containerstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carma/containers"
)

// Engine is an engine that a test may kill. Its containers continue.
type Engine interface {
	// Kill kills the engine like kill -9. Start starts it again and waits until it listens.
	Kill()
	Start() error
}

// Forgetful is an [Engine] that may not know, after a start, how containers ended while
// it was down.
type Forgetful interface{ Forgets() bool }

// Restarts kills the engine in the middle of a run and starts it again. It checks that
// nothing is lost: the container continues, its exit is reported even if it came while
// the engine was down, and its output arrives completely and once.
func Restarts(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images, engine Engine) {
	for name, whileDown := range map[string]bool{"goes on": false, "ends meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			d := newDriver(t)
			t.Cleanup(func() { _ = d.Close() })
			s := &suite{T: t, d: d, ctx: ctx, img: img, newDriver: newDriver, mark: "restart"}
			folder := t.TempDir()
			spec := s.spec("lines:200", "gate:/gate/open", "lines:300", "write:/gate/done", "raw:end", "exit:9")
			spec.Name += "-" + filepath.Base(filepath.Dir(folder))
			spec.User = "0:0"
			spec.Mounts = []containers.Mount{{Source: folder, Target: "/gate"}}
			id := s.startSpec(spec)
			log, waited := &resumedLog{suite: s, id: id}, make(chan containers.Exit, 1)
			read := make(chan error, 1)
			go func() { read <- log.follow() }()
			go func() { waited <- s.waitAlways(id) }()
			log.await(400)

			engine.Kill()
			if whileDown {
				s.open(folder)
				s.exists(filepath.Join(folder, "done"))
			}
			if err := engine.Start(); err != nil {
				t.Fatal(err)
			}
			if !whileDown {
				s.open(folder)
			}
			exit := <-waited
			if f, ok := engine.(Forgetful); ok && f.Forgets() && whileDown {
				if !exit.Lost {
					t.Errorf("exit = %+v, want one that is lost", exit)
				}
			} else if exit.Code != 9 || exit.Error != "" || exit.Lost || exit.Finished.Before(exit.Started) {
				t.Errorf("exit = %+v, want code 9", exit)
			}
			if err := <-read; err != nil {
				t.Error(err)
			}
			check := func(what string, r record) {
				r.check(t)
				s.equal(what, r.lines(containers.Stdout), slices.Concat(numbered("out", 200), numbered("out", 300), []string{"written", "end"}))
				s.equal(what, r.lines(containers.Stderr), slices.Concat(numbered("err", 200), numbered("err", 300)))
			}
			check("followed", log.log)
			other := *s // the driver of a daemon that was also restarted
			other.d = newDriver(t)
			defer func() { _ = other.d.Close() }()
			check("read by another", other.logs(id, time.Time{}, true))
			if again := other.wait(id); again != exit {
				t.Errorf("another's Wait = %+v, want %+v", again, exit)
			}
			if err := other.d.Start(ctx, id); err != nil {
				t.Errorf("start of what has ended: %v", err)
			}
			if got := other.state(id); got != containers.StateExited {
				t.Errorf("state = %s, want exited", got)
			}
		})
	}
}

func (s *suite) open(folder string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(folder, "open"), nil, 0o644); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) exists(path string) {
	s.Helper()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-s.ctx.Done():
			s.Fatalf("no %s", path)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// waitAlways waits for the container despite all failures of the engine.
func (s *suite) waitAlways(id string) containers.Exit {
	for {
		exit, err := s.d.Wait(s.ctx, id)
		if err == nil {
			return exit
		}
		if !errors.Is(err, containers.ErrUnavailable) {
			s.Errorf("wait: %v", err)
			return exit
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// resumedLog follows a log despite all failures of the engine.
type resumedLog struct {
	*suite
	id  string
	log record
}

// await returns after n entries have arrived.
func (l *resumedLog) await(n int) {
	l.Helper()
	for {
		var r record
		if err := l.d.Logs(l.ctx, l.id, time.Time{}, false, r.add); err != nil {
			l.Fatalf("logs: %v", err)
		}
		if len(r) >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (l *resumedLog) follow() error {
	var since time.Time
	for {
		err := l.d.Logs(l.ctx, l.id, since, true, func(at time.Time, st containers.Stream, line []byte, partial bool) {
			since = at
			l.log.add(at, st, line, partial)
		})
		if !errors.Is(err, containers.ErrUnavailable) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// HostOOM checks that a container reports a kill because host memory ran out. It is not
// part of [Suite]. The fake has no kernel. And Docker gets the kill from its containerd,
// which is not notified if a control group hierarchy of this process is not mounted.
func HostOOM(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d := newDriver(t)
	t.Cleanup(func() { _ = d.Close() })
	s := &suite{T: t, d: d, ctx: ctx, img: img, newDriver: newDriver, mark: "oom"}
	for _, limit := range []func(*containers.Spec){
		func(spec *containers.Spec) { spec.Sandbox = &containers.Sandbox{Memory: 32 << 20} },
		func(spec *containers.Spec) { spec.Memory = 32 << 20 },
	} {
		told := false
		for range 3 { // on a busy machine the engine may receive the end before the kill
			spec := s.spec("hog:256") // each has a name of its own
			limit(&spec)
			exit := s.wait(s.startSpec(spec))
			if exit.Code == 0 {
				t.Errorf("exit = %+v, want one killed for lack of memory", exit)
			}
			if told = told || exit.OOMKilled; told {
				break
			}
		}
		if !told {
			t.Error("three kills for lack of memory, and none was told of")
		}
	}
	spec := s.spec("hog:8")
	spec.Sandbox = &containers.Sandbox{Memory: 32 << 20}
	if exit := s.wait(s.startSpec(spec)); exit.OOMKilled || exit.Code != 0 {
		t.Errorf("exit = %+v, want code 0", exit)
	}
}

// Pids checks the limit of processes, of a task and of a sandbox. It is not part of
// [Suite], because the fake has no kernel.
func Pids(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d := newDriver(t)
	t.Cleanup(func() { _ = d.Close() })
	s := &suite{T: t, d: d, ctx: ctx, img: img, newDriver: newDriver, mark: "pids"}
	const most = 32
	ordinary := s.spec("fork:200")
	ordinary.Pids = most
	box := s.spec("fork:200")
	box.Sandbox = &containers.Sandbox{Processes: most}
	for what, spec := range map[string]containers.Spec{"task": ordinary, "sandbox": box} {
		id := s.startSpec(spec)
		exit := s.wait(id)
		var forked int
		for _, line := range s.logs(id, time.Time{}, true).lines(containers.Stdout) {
			_, _ = fmt.Sscanf(line, "forked %d", &forked)
		}
		if exit.Code == 0 && (forked == 0 || forked >= most) { // another exit code means that the limit stopped the tool itself
			t.Errorf("%s: it ended with %+v and had %d processes more, of %d", what, exit, forked, most)
		}
	}
}
