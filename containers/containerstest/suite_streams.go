package containerstest

import "carma/containers"

// streams checks the lines of both streams. For a driver that cannot distinguish them, it
// checks that each stream's lines come in order and that there are no other lines.
func (s *suite) streams(log record, out, err []string) {
	s.Helper()
	if !s.img.Lacks.Streams {
		s.equal("stdout", log.lines(containers.Stdout), out)
		s.equal("stderr", log.lines(containers.Stderr), err)
		return
	}
	var rest []string
	next := 0
	for _, line := range log.lines(containers.Stdout) {
		if next < len(out) && line == out[next] {
			next++
		} else {
			rest = append(rest, line)
		}
	}
	if next != len(out) {
		s.Errorf("stdout: %d lines, want %d; there is no %.60q", next, len(out), out[next])
	}
	s.equal("stderr", rest, err)
}
