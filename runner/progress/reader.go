package progress

import (
	"bytes"
	"time"
)

// Stream distinguishes the output streams of a task: a line does not continue in another
// stream. The numbers equal the numbers in packages containers and tasklog.
type Stream uint8

// The streams. Any other counts as Stdout.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Reader reads the progress of one attempt. The zero value is ready. It is not
// safe for use by several goroutines at once.
type Reader struct {
	lines  [2]lineBuffer
	look   bucket // lines that are read
	parse  bucket // lines that are parsed
	count  counters
	pace   pace
	figure figures
	table  table
	params Parameters

	began bool
	zero  time.Time // begin of the seconds below
	now   float64   // time of the latest output
	seen  float64   // when the counter moved last
	heard float64   // arrival time of the line with that count
	lull  float64   // the longest recent time between two such lines

	// Values of count when pace began.
	version  int
	scale    scale
	restarts int
	high     float64 // the highest count since then
	printed  float64 // steps per second as printed, or 0 if not printed
	after    int     // lines of other counters since the count reached its total

	clean []byte
}

// Limits of reading and parsing, in lines per second and per burst. Training loops print
// less; more output is sampled.
const (
	lookRate, lookBurst   = 2000, 4000
	parseRate, parseBurst = 50, 300
	// costlyLine is the number of bytes of a line that cost one parse.
	costlyLine = 512
)

// bucket is a token bucket.
type bucket struct {
	tokens, at float64
	began      bool
}

// fill adds the allowance for the time since the last call.
func (b *bucket) fill(now, rate, burst float64) {
	if !b.began {
		b.tokens, b.began = burst, true
	}
	b.tokens = min(burst, b.tokens+max(0, now-b.at)*rate)
	b.at = max(b.at, now)
}

// Feed takes a piece of output that came at the given time. Pieces may be cut anywhere; a
// line ends with \n or \r. A time before an earlier one counts as the earlier time. Feed
// does not keep chunk.
func (r *Reader) Feed(at time.Time, stream Stream, chunk []byte) {
	r.clock(at)
	buf := r.begun(stream)
	r.look.fill(r.now, lookRate, lookBurst)
	r.parse.fill(r.now, parseRate, parseBurst)
	for {
		end := lineEnd(chunk)
		if r.look.tokens < 1 || r.parse.tokens < 1 { // no tokens are left, so only the last, unfinished line matters
			if end = bytes.LastIndexAny(chunk, "\n\r"); end >= 0 {
				buf.clear()
			}
			buf.add(chunk[end+1:], r.now)
			return
		}
		if end < 0 {
			buf.add(chunk, r.now)
			return
		}
		if len(buf.text) == 0 && end <= maxLine {
			r.line(chunk[:end], r.now)
		} else {
			if buf.add(chunk[:end], r.now); !buf.read {
				r.line(buf.text, buf.at)
			}
			buf.clear()
		}
		chunk = chunk[end+1:]
	}
}

// Cut drops the unfinished line of a stream, because the rest of the line does not come.
func (r *Reader) Cut(stream Stream) { r.begun(stream).clear() }

// begun returns the unfinished line of a stream.
func (r *Reader) begun(stream Stream) *lineBuffer {
	if stream == Stderr {
		return &r.lines[1]
	}
	return &r.lines[0]
}

// standsFor is the time in seconds after which the text of a bar counts as a line,
// because a program may write the bar in several pieces.
const standsFor = 1

// Standing reads the unfinished line of a stream, if it has not changed for standsFor at
// the given time. Bars that begin with a carriage return end with the next carriage
// return. Call it only if no piece of the line is on its way.
func (r *Reader) Standing(at time.Time, stream Stream) {
	if l := r.begun(stream); !l.read && len(l.text) > 0 && r.seconds(at)-l.at >= standsFor {
		l.read = true
		r.line(l.text, l.at)
	}
}

// Line reads a line as container engines pass it, without its newline. If partial is set,
// the line continues in the next call.
func (r *Reader) Line(at time.Time, stream Stream, text []byte, partial bool) {
	r.Feed(at, stream, text)
	if !partial {
		r.Feed(at, stream, newline)
	}
}

var newline = []byte{'\n'}

// clock sets the reader's time.
func (r *Reader) clock(at time.Time) {
	if !r.began {
		r.began, r.zero = true, at
	}
	r.now = max(r.now, r.seconds(at))
}

// seconds converts a time to seconds since the first output.
func (r *Reader) seconds(at time.Time) float64 {
	const longest = 1 << 32 // seconds; longer times are nonsense
	return min(max(at.Sub(r.zero).Seconds(), -longest), longest)
}

// line processes a whole line.
func (r *Reader) line(text []byte, at float64) {
	if len(text) == 0 {
		return
	}
	r.look.tokens--
	r.clean = clean(r.clean[:0], text)
	if !promising(r.clean) && !r.table.row(r.clean) && !header(r.clean) {
		return
	}
	r.parse.tokens -= 1 + float64(len(r.clean)/costlyLine)
	line := string(r.clean)
	r.params.read(line)
	if r.count.outer.read(line) {
		r.count.nextRun()
	}
	if r.count.setting(line) || settingsLine(line) {
		return
	}
	m, ok := r.table.read(line)
	if !ok {
		m, ok = parse(line)
	}
	if !ok {
		r.pace.aside = r.pace.aside || asideLabel(behindStamp(line))
		return
	}
	r.figure.take(m, at)
	if m.aside {
		r.pace.aside = true
		r.after++
		return
	}
	r.take(m, at)
}

// take processes the mark of a line.
func (r *Reader) take(m mark, at float64) {
	if m.form == Figure {
		m.step, m.name, m.unit = r.figure.count, m.per, m.per
	}
	what, at := r.count.take(m, at)
	if r.count.main == 0 {
		return
	}
	p := r.count.position()
	if r.version != r.count.version || r.scale != p.scale {
		r.version, r.scale, r.high = r.count.version, p.scale, 0
		if r.pace.began {
			r.restarts++
		}
		r.pace = pace{}
	}
	if !r.pace.began {
		r.replay(p.done)
	}
	switch what {
	case nothing:
		r.after++
	case besides:
		r.pace.aside = true
		r.after++
	case training:
		if p.total == 0 || p.done < p.total {
			r.after = 0
		}
		if m.pace > 0 {
			r.printed = m.pace
		}
		r.high = max(r.high, p.done)
		if r.pace.add(at, r.high) {
			if lull := r.now - r.heard; lull > 0 && r.heard > 0 {
				r.lull = max(r.lull*0.9, lull)
			}
			r.seen, r.heard = at, r.now
		}
		r.count.estimate(&r.pace, m, p.done)
	}
}

// replay adds to pace the first counts of the training's counter, which arrived before it
// was known to count.
func (r *Reader) replay(done float64) {
	k := &r.count.list[r.count.main-1]
	if k.moves != 2 || k.runs > 0 || k.bounds > 0 || k.done < k.second {
		return
	}
	for _, early := range [...]struct{ at, done float64 }{{k.first, k.from}, {k.secondAt, k.second}} {
		if d := done - (k.done - early.done); d >= 0 {
			r.pace.add(early.at, d)
		}
	}
}
