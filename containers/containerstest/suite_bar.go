package containerstest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carma/containers"
)

// testBar checks that the printed part of an unfinished line, like a progress bar,
// arrives before the line ends: in the log, or in a stream attached to, which must have
// only that stream. The log must have all of it once.
func testBar(t *testing.T, s *suite) {
	if s.img.Lacks.Bars {
		t.Skip("lines come when they end")
	}
	folder := t.TempDir()
	spec := s.spec("gate:/gate/begin", "raw:not this", "rawerr:\r 10/100", "gate:/gate/end", "rawerr:\r 20/100\nafter", "out:")
	spec.User = "0:0"
	spec.Mounts = []containers.Mount{{Source: folder, Target: "/gate"}}
	id := s.startSpec(spec)
	open := func(gate string) {
		if err := os.WriteFile(filepath.Join(folder, gate), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, attaches := s.d.(containers.OutputAttacher)
	if attaches {
		session, err := d.AttachOutput(s.ctx, id, containers.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		text, over := newScreenText(), make(chan error, 1)
		go func() { over <- session.Copy(text, text) }()
		open("begin")
		s.shows(text, "\r 10/100")
		_ = session.Close()
		<-over
		if got, _ := text.now(); got != "\r 10/100" {
			t.Errorf("the attached stream has %q", got)
		}
	} else {
		log := s.follow(id)
		open("begin")
		log.until("\r 10/100")
	}
	open("end")
	s.wait(id)
	all := s.logs(id, time.Time{}, false)
	s.equal("stdout", all.lines(containers.Stdout), []string{"not this"})
	s.equal("stderr", all.lines(containers.Stderr), []string{"\r 10/100\r 20/100", "after"})
	for i, e := range all { // a reader that resumes after each piece of the bar
		if rest := s.logs(id, e.at, false); !slices.EqualFunc(rest, all[i+1:], same) {
			t.Errorf("after entry %d: %d entries, want %d", i, len(rest), len(all)-i-1)
		}
	}
	if attaches {
		_, err := d.AttachOutput(s.ctx, id, containers.Stderr)
		s.failsWith("attach to one that has ended", err, containers.ErrNotFound)
	}
}
