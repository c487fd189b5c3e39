package throughput

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"carma/containers"
	"carma/runner/progress"
)

// Some engines write a line to the log only when the line ends, so a progress bar appears late.
// While the log of a stream is quiet, progress is therefore read from the stream itself, if the
// driver can attach to it. The stored output always comes from the log.
const (
	// logQuiet is the time without an entry after which a stream is attached. It is
	// also the period of attachedMost.
	logQuiet = 5 * time.Second
	// attachedMost is the largest number of bytes of an attached stream in logQuiet. With
	// more output, the log gets a piece about every second, and it is not worth reading
	// everything twice. It also limits what a program prints while a hung daemon does not
	// read: the engine blocks the program after about 1 MB.
	attachedMost = 64 << 10
	// sameWrite is the largest delay of the log's time stamp after the same text from the
	// stream.
	sameWrite = 100 * time.Millisecond
)

// source records whether the reader gets a stream's output from its log or from the attached
// stream.
type source struct {
	attached bool
	printed  bool      // everything printed up to the latest piece was read
	heard    time.Time // when there was an entry of the log, or the stream was detached
	latest   time.Time // when the stream had its latest piece
	again    bool      // the log may have text that was read from the stream
	begun    time.Time // begin of the period
	bytes    int       // bytes read in the period
}

// source returns the source of a stream.
func (f *Follower) source(stream containers.Stream) *source {
	if stream == containers.Stderr {
		return &f.sources[1]
	}
	return &f.sources[0]
}

// logged returns the part of a log entry for the reader: nothing while the stream is
// attached, nor text that was read from it. An entry that was begun before the stream was
// detached counts from its last carriage return on.
func (s *source) logged(at time.Time, text []byte) ([]byte, bool) {
	s.heard = time.Now()
	switch {
	case s.attached:
		return nil, false
	case !s.again:
		return text, true
	case !at.After(s.latest.Add(sameWrite)) && s.heard.Sub(s.latest) < 2*logQuiet: // otherwise the clock was set back
		return nil, false
	}
	s.again = false
	return text[1+bytes.LastIndexByte(bytes.TrimRight(text, "\r"), '\r'):], true
}

// takePrinted takes a piece of an attached stream. From the first piece on, the log is
// not read. It returns false if there is so much output that reading the log suffices.
func (f *Follower) takePrinted(stream containers.Stream, piece []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, now := f.source(stream), time.Now()
	if !s.attached {
		s.attached, s.again = true, true
		f.reader.Cut(progress.Stream(stream))
	}
	s.latest = now
	if now.Sub(s.begun) >= logQuiet {
		s.begun, s.bytes = now, 0
	}
	s.bytes += len(piece)
	f.read(now, stream, piece, true)
	return s.bytes <= attachedMost
}

// detached makes the reader read the log of a stream again.
func (f *Follower) detached(stream containers.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.source(stream)
	s.heard = time.Now()
	if s.attached {
		s.attached = false
		f.reader.Cut(progress.Stream(stream))
	}
}

// quiet returns the time until the log of a stream has been quiet for logQuiet.
func (f *Follower) quiet(stream containers.Stream) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return logQuiet - time.Since(f.source(stream).heard)
}

// Attach reads the streams whose logs are quiet from the attempt's container. done ends
// that. A terminal has one stream.
func (f *Follower) Attach(ctx context.Context, driver containers.OutputAttacher, id string, terminal bool) (done func()) {
	ctx, end := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() { f.attach(ctx, driver, id, containers.Stdout) })
	if !terminal {
		over.Go(func() { f.attach(ctx, driver, id, containers.Stderr) })
	}
	return func() { end(); over.Wait() }
}

// attach reads a stream with a quiet log, until ctx or the container ends.
func (f *Follower) attach(ctx context.Context, driver containers.OutputAttacher, id string, stream containers.Stream) {
	for f.detached(stream); ; f.detached(stream) {
		for left := f.quiet(stream); left > 0; left = f.quiet(stream) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(left):
			}
		}
		session, err := driver.AttachOutput(ctx, id, stream)
		switch {
		case ctx.Err() != nil && err != nil, errors.Is(err, containers.ErrNotFound), errors.Is(err, containers.ErrUnsupported):
			return
		case err != nil:
			continue // the engine's watcher logs the cause
		}
		stop := context.AfterFunc(ctx, func() { _ = session.Close() })
		to := &attachedWriter{f, stream}
		_ = session.Copy(to, to)
		stop()
		_ = session.Close()
	}
}

// attachedWriter is the writer of an attached stream.
type attachedWriter struct {
	f      *Follower
	stream containers.Stream
}

var errMuch = errors.New("the log will do")

func (p *attachedWriter) Write(b []byte) (int, error) {
	if !p.f.takePrinted(p.stream, b) {
		return 0, errMuch
	}
	return len(b), nil
}
