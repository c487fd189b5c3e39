package docker

import (
	"bytes"
	"errors"
	"hash/maphash"
	"time"

	"carma/containers"
)

// maxPiece is the largest piece of a line that a sink receives, in bytes.
const maxPiece = 64 << 10

// Reasons to stop reading the log and begin again.
var (
	// errLost means that the last entries read are no longer in the log's tail.
	errLost = errors.New("position in the log not found")
	// errWentBack means that a followed stream may be repeating itself.
	errWentBack = errors.New("log stream went back")
	// errSilent means that a followed stream sent nothing for some time.
	errSilent = errors.New("log stream silent")
)

// cursor is a position in one container's log, kept over several passes over the log. It
// assigns a unique time to every entry and sends each entry once.
//
// The engine's times cannot serve as positions. The two streams are stamped by separate
// writers and may be stored out of order. All pieces of a long line have the time of its
// first piece. Clocks are set back. So an entry that is not later than its predecessor
// gets the predecessor's time plus 1 ns. The resulting times strictly increase in the
// log's order. They depend only on the log, so they are the same in every pass and every
// process.
type cursor struct {
	sink containers.LogSink
	sent time.Time // time of the newest entry sent to the sink
	last time.Time // time of the newest entry read
	ends [3]end    // by stream

	// Keys of the two newest entries read. A pass over the log's tail finds its position by
	// them.
	newest, before uint64
	seeking        bool
	sought         int    // number of entries read while seeking
	previous       uint64 // key of the newest entry read while seeking

	begun bool // a pass over the whole log has received its first entry
	taken int  // number of entries read, without those read while seeking
}

// end describes the newest entry of a stream.
type end struct {
	at     time.Time       // the engine's own time
	pieces map[uint64]bool // keys of the pieces of its line, if the line has not ended
}

var seed = maphash.MakeSeed()

func newCursor(since time.Time, sink containers.LogSink) *cursor {
	return &cursor{sink: sink, sent: since}
}

// rewind begins a pass over the whole log.
func (c *cursor) rewind() {
	c.last, c.ends = time.Time{}, [3]end{}
	c.newest, c.before, c.seeking, c.begun = 0, 0, false, false
}

// placed reports whether a pass over the tail can find its position. It cannot inside a
// long line of equal pieces.
func (c *cursor) placed() bool { return c.before != 0 && c.before != c.newest }

// seek begins a pass over the log's tail.
func (c *cursor) seek() { c.seeking, c.previous, c.sought = true, 0, 0 }

// entry processes one entry: its time, a space, the text, and a newline if the line ends
// here. live is set if the stream is being followed, and may repeat itself.
func (c *cursor) entry(f *frame, live bool) error {
	stream := containers.Stdout
	if f.stream == containers.Stderr {
		stream = containers.Stderr
	}
	key := maphash.Bytes(seed, f.data)&^3 | uint64(stream) // never 0
	if c.seeking {
		c.seeking = key != c.newest || c.previous != c.before
		c.previous = key
		c.sought++
		return nil
	}
	at, text, whole := parse(f.data)
	if at.IsZero() {
		at = c.last
	}
	if !c.begun && !c.sent.IsZero() && at.After(c.sent) {
		c.sink(at.Add(-1), containers.Missing, containers.Lines{Lines: -1}.Text(), false)
	}
	c.begun = true
	end := &c.ends[stream]
	if live && c.next(at).After(c.sent) && end.goesBack(at, key) {
		return errWentBack
	}
	c.taken++
	c.before, c.newest = c.newest, key
	for len(text) > maxPiece {
		c.send(at, stream, text[:maxPiece], true)
		text = text[maxPiece:]
	}
	c.send(at, stream, text, !whole)
	end.at = at
	switch {
	case whole:
		end.pieces = nil
	case end.pieces == nil:
		end.pieces = map[uint64]bool{key: true}
	default:
		end.pieces[key] = true
	}
	return nil
}

// goesBack reports whether an entry does not continue its stream. A following reader of
// engine 20.10 sends the beginning of a new log file twice. A clock that was set back
// looks the same. A pass that does not follow can distinguish them, because it reads each
// entry once.
func (e *end) goesBack(at time.Time, key uint64) bool {
	if at.Equal(e.at) && e.pieces != nil {
		return e.pieces[key] // the pieces of a line have the same time
	}
	return !at.After(e.at)
}

// finish ends lines that the container left without a newline. It sends an empty last
// piece, because their text has already been sent.
func (c *cursor) finish() {
	for _, stream := range []containers.Stream{containers.Stdout, containers.Stderr} {
		if c.ends[stream].pieces != nil {
			c.send(c.last, stream, nil, false)
		}
	}
}

// next returns the time of an entry that the engine stamped with at.
func (c *cursor) next(at time.Time) time.Time {
	if at.After(c.last) {
		return at
	}
	return c.last.Add(1)
}

func (c *cursor) send(at time.Time, stream containers.Stream, text []byte, partial bool) {
	c.last = c.next(at)
	if c.last.After(c.sent) {
		c.sent = c.last
		c.sink(c.last, stream, text, partial)
	}
}

// parse splits an entry. at is zero if the entry has no time. whole is set if its line
// ends here.
func parse(data []byte) (at time.Time, text []byte, whole bool) {
	if stamp, rest, ok := bytes.Cut(data, []byte(" ")); ok {
		if t, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil {
			at, data = t.UTC(), rest
		}
	}
	text, whole = bytes.CutSuffix(data, []byte("\n"))
	return at, text, whole
}
