package throughput

import (
	"sync"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/runner/clock"
	"carma/runner/progress"
	"carma/runner/tasklog"
)

// Follower reads the progress of one attempt from its output. When a daemon adopts an
// attempt, the follower begins empty, because output that an earlier daemon stored is not
// read again.
type Follower struct {
	clock *clock.Clock

	mu      sync.Mutex // guards all below
	sources [2]source  // of the two streams
	reader  progress.Reader
	wall    time.Time     // time of the latest line by the engine's clock
	latest  units.Instant // the daemon's time of the latest line
	left    float64       // lines that may be read now
	torn    bool          // lines were left out since the last one read
	told    reportedThroughput
	alone   exclusiveTime
	gone    []suspendedSpan // when the attempt was suspended, as far as this daemon has seen it
}

func newFollower(clock *clock.Clock) *Follower { return &Follower{clock: clock} }

// exclusiveTime is the last interval in which an attempt was alone on its GPUs.
type exclusiveTime struct {
	from, settled units.Instant // from settled on, the speed counts in any case
	until         units.Instant // end of the interval, or 0 if the attempt was never alone
	over          bool
}

const (
	// Lines that come within sameMoment of wall clock time get one time.
	sameMoment = time.Millisecond
	// If a line is older than the one before by more than clockBack, the wall
	// clock was set back.
	clockBack = time.Second
	// Limits of the lines that are read of a flood of output, per second of the wall
	// clock and in one burst. Further lines cost almost nothing.
	floodRate, floodBurst = 2000, 4000
)

// Read reads a line of the engine's log, or a piece of one, that the engine received
// at a time of the wall clock.
func (f *Follower) Read(at time.Time, stream containers.Stream, line []byte, partial bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if line, ok := f.source(stream).logged(at, line); ok {
		f.read(at, stream, line, partial)
	}
}

// read gives the reader a line, or a piece of one. The caller holds the mutex.
func (f *Follower) read(at time.Time, stream containers.Stream, line []byte, partial bool) {
	if d := at.Sub(f.wall); d < 0 || d >= sameMoment {
		f.latest = follows(f.latest, f.clock.FromWall(at), f.clock.Now())
		f.left = min(floodBurst, f.left+min(max(d.Seconds(), sameMoment.Seconds()), 2)*floodRate)
		f.wall = at
	}
	if f.left < 1 {
		f.torn = true
		return
	}
	f.left--
	if f.torn { // an unfinished line does not continue here
		f.torn = false
		f.reader.Feed(f.lived(f.latest), progress.Stream(stream), []byte{'\n'})
	}
	f.reader.Line(f.lived(f.latest), progress.Stream(stream), line, partial)
	f.source(stream).printed = partial && len(line) < tasklog.PieceBytes
}

// standing reads progress bars on unfinished lines. The caller holds the mutex.
func (f *Follower) standing(now units.Instant) {
	for _, stream := range []containers.Stream{containers.Stdout, containers.Stderr} {
		if f.source(stream).printed {
			f.reader.Standing(f.lived(now), progress.Stream(stream))
		}
	}
}

// follows returns the daemon's time of a line. The time is not before the previous line
// and not after now, whatever happens to the wall clock.
func follows(before, at, now units.Instant) units.Instant {
	if at > now || at < before.Add(-clockBack) {
		at = now
	}
	return max(before, at)
}

// Progress returns the attempt's progress and the numbers of parameters that it has
// printed, or false if it has printed nothing about its progress.
func (f *Follower) Progress(now units.Instant) (progress.Progress, progress.Parameters, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.standing(now)
	params, _ := f.reader.Parameters()
	p, ok := f.reader.Progress(f.lived(now))
	p.Seen = f.passed(p.Seen)
	return p, params, ok
}

// Parameters returns the numbers of parameters that the output has named, or nil.
func (f *Follower) Parameters() *progress.Parameters {
	if f == nil { // the container has never run
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, ok := f.reader.Parameters(); ok {
		return &p
	}
	return nil
}
