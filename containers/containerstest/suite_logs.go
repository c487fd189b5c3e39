package containerstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
)

// record lists everything that a sink received.
type record []entry

func (r *record) add(at time.Time, stream containers.Stream, line []byte, partial bool) {
	*r = append(*r, entry{at, stream, slices.Clone(line), partial})
}

// lines joins the pieces of each line of a stream. A line without an end gets a
// mark.
func (r record) lines(stream containers.Stream) []string {
	lines, line, open := []string{}, "", false
	for _, e := range r {
		if e.stream != stream {
			continue
		}
		line += string(e.text)
		if open = e.partial; !open {
			lines, line = append(lines, line), ""
		}
	}
	if open {
		lines = append(lines, line+" (no end)")
	}
	return lines
}

// check checks properties that every log has.
func (r record) check(t *testing.T) {
	t.Helper()
	for i, e := range r {
		if len(e.text) > 64<<10 || strings.Contains(string(e.text), "\n") {
			t.Errorf("entry %d: %d bytes, or with a newline", i, len(e.text))
		}
		if e.stream != containers.Stdout && e.stream != containers.Stderr {
			t.Errorf("entry %d: stream %d", i, e.stream)
		}
		if i > 0 && !e.at.After(r[i-1].at) {
			t.Errorf("entry %d: time %v is not after %v", i, e.at, r[i-1].at)
		}
	}
}

func same(a, b entry) bool {
	return a.at.Equal(b.at) && a.stream == b.stream && a.partial == b.partial && string(a.text) == string(b.text)
}

func (s *suite) logs(id string, since time.Time, follow bool) record {
	s.Helper()
	var r record
	if err := s.d.Logs(s.ctx, id, since, follow, r.add); err != nil {
		s.Fatalf("logs: %v", err)
	}
	r.check(s.T)
	return r
}

// followed is a log that is being followed.
type followed struct {
	s    *suite
	mu   sync.Mutex
	log  record
	more chan struct{} // holds one token after entries were added
	done chan struct{}
	err  error
}

func (s *suite) follow(id string) *followed {
	f := &followed{s: s, more: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.err = s.d.Logs(s.ctx, id, time.Time{}, true, func(at time.Time, st containers.Stream, line []byte, partial bool) {
			f.mu.Lock()
			f.log.add(at, st, line, partial)
			f.mu.Unlock()
			select {
			case f.more <- struct{}{}:
			default:
			}
		})
	}()
	return f
}

// until waits until the line has arrived.
func (f *followed) until(line string) {
	f.s.Helper()
	for {
		f.mu.Lock()
		found := slices.ContainsFunc(f.log, func(e entry) bool { return string(e.text) == line })
		f.mu.Unlock()
		if found {
			return
		}
		select {
		case <-f.more:
		case <-f.done:
			f.s.Fatalf("the log ended before %q: %v", line, f.err)
		case <-f.s.ctx.Done():
			f.s.Fatalf("no line %q", line)
		}
	}
}

// end waits for the end of the log.
func (f *followed) end() error {
	<-f.done
	return f.err
}

func numbered(word string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s %d", word, i+1)
	}
	return out
}

func testLogsStreams(_ *testing.T, s *suite) {
	id := s.start("lines:50", "out:", "err:  spaced  ", "out:ünï\tçode")
	s.wait(id)
	log := s.logs(id, time.Time{}, false)
	s.streams(log, append(numbered("out", 50), "", "ünï\tçode"), append(numbered("err", 50), "  spaced  "))
}

func testLogsLongLine(_ *testing.T, s *suite) {
	sizes := []int{16<<10 - 1, 16 << 10, 16<<10 + 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000}
	args, want := []string{}, []string{}
	for _, n := range sizes {
		args = append(args, fmt.Sprintf("long:%d", n), "err:between", "out:after")
		if s.img.Lacks.Streams { // the other stream's line may arrive within the long one
			args = slices.Delete(args, len(args)-2, len(args)-1)
		}
		want = append(want, LongLine(n), "after")
	}
	id := s.start(args...)
	s.wait(id)
	s.equal("stdout", s.logs(id, time.Time{}, true).lines(containers.Stdout), want)
}

func testLogsLastLine(_ *testing.T, s *suite) {
	args, stderr := []string{"out:one", "raw:two", "rawerr:three"}, []string{"three"}
	if s.img.Lacks.Streams {
		args, stderr = args[:2], nil
	}
	id := s.start(args...)
	s.wait(id)
	for _, follow := range []bool{false, true} {
		log := s.logs(id, time.Time{}, follow)
		s.streams(log, []string{"one", "two"}, stderr)
	}
}

// testLogsSince resumes after each single entry. Each later entry must arrive once and
// with the same time.
func testLogsSince(t *testing.T, s *suite) {
	id := s.start("lines:8", "long:100000", "lines:2", "raw:end")
	s.wait(id)
	all := s.logs(id, time.Time{}, false)
	if len(all) < 20 {
		t.Fatalf("only %d entries", len(all))
	}
	for i, e := range all {
		rest := s.logs(id, e.at, i%2 == 0)
		if !slices.EqualFunc(rest, all[i+1:], same) {
			t.Errorf("after entry %d (%q): %d entries, want the %d that follow", i, clip(e.text), len(rest), len(all)-i-1)
		}
	}
	before := all[0].at.Add(-time.Nanosecond)
	if got := s.logs(id, before, false); !slices.EqualFunc(got, all, same) {
		t.Errorf("from just before the first entry: %d entries, want %d", len(got), len(all))
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 20)] }

func testLogsFollow(t *testing.T, s *suite) {
	folder := t.TempDir()
	args, last := []string{"out:first", "gate:/gate/open", "lines:500", "raw:last"}, []string{"last"}
	if s.img.Lacks.Streams { // a line of the other stream may continue this stream's unfinished line
		args, last = args[:3], nil
	}
	spec := s.spec(args...)
	spec.User = "0:0"
	spec.Mounts = []containers.Mount{{Source: folder, Target: "/gate"}}
	id := s.startSpec(spec)
	log := s.follow(id)
	log.until("first") // while the container runs
	if got := s.state(id); got != containers.StateRunning {
		t.Errorf("state = %s, want running", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "open"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := log.end(); err != nil {
		t.Errorf("follow: %v", err)
	}
	if got := s.state(id); got != containers.StateExited {
		t.Errorf("state after the log's end = %s, want exited", got)
	}
	log.log.check(t)
	s.streams(log.log, slices.Concat([]string{"first"}, numbered("out", 500), last), numbered("err", 500))
}

func testLogsNow(t *testing.T, s *suite) {
	id := s.start("out:ready", "block:0")
	s.follow(id).until("ready")
	got := s.logs(id, time.Time{}, false) // returns although the container runs
	s.equal("stdout", got.lines(containers.Stdout), []string{"ready"})
	if got := s.logs(id, got[len(got)-1].at, false); len(got) != 0 {
		t.Errorf("logs after the last entry = %v", got)
	}
}

// testLogsResumed interrupts the stream repeatedly while the container prints, like
// restarts of the daemon.
func testLogsResumed(t *testing.T, s *suite) {
	out := slices.Concat(numbered("out", 1500), []string{LongLine(200000)}, numbered("out", 1500), []string{"end"})
	stderr := append(numbered("err", 1500), numbered("err", 1500)...)
	args := []string{"lines:1500", "long:200000", "lines:1500", "raw:end"}
	if s.img.Lacks.Streams {
		args = []string{"lines:3000"}
		out, stderr = numbered("out", 3000), numbered("err", 3000)
	}
	id := s.start(args...)
	var all record
	for cut := 1; ; cut += 97 {
		ctx, cancel := context.WithCancel(s.ctx)
		since, n := time.Time{}, 0
		if len(all) > 0 {
			since = all[len(all)-1].at
		}
		err := s.d.Logs(ctx, id, since, true, func(at time.Time, st containers.Stream, line []byte, partial bool) {
			all.add(at, st, line, partial)
			if n++; n == cut {
				cancel()
			}
		})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("logs: %v", err)
		}
	}
	all.check(t)
	s.streams(all, out, stderr)
}

// testLogsShortLife follows containers that end at once, whose last lines a reader loses
// most easily.
func testLogsShortLife(_ *testing.T, s *suite) {
	args, stdout := []string{"lines:300", "raw:end"}, append(numbered("out", 300), "end")
	if s.img.Lacks.Streams {
		args, stdout = args[:1], stdout[:300]
	}
	for range 5 {
		id := s.start(args...)
		log := s.logs(id, time.Time{}, true)
		s.streams(log, stdout, numbered("err", 300))
	}
}

func testLogsCancelled(t *testing.T, s *suite) {
	id := s.start("out:ready", "block:0")
	ctx, cancel := context.WithCancel(s.ctx)
	err := s.d.Logs(ctx, id, time.Time{}, true, func(time.Time, containers.Stream, []byte, bool) { cancel() })
	cancel()
	s.failsWith("logs", err, context.Canceled)
	if errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("cancelled logs blame the engine: %v", err)
	}
}
