package containers

import (
	"bytes"
	"time"

	"carma/containers/endtext"
)

// Limits of a [Tail], in lines and bytes.
const (
	TailLines = 400
	TailBytes = 128 << 10
	// tailLine is the largest number of bytes kept of one line: tailHead from its beginning,
	// the others from its end, with tailCut between them.
	tailLine = 4 << 10
	tailHead = 3 << 10
	tailCut  = " ... "
	tailEnd  = tailLine - tailHead - len(tailCut)
)

// Tail keeps the last lines of a container's output for [Classify], of both streams, in
// the order of their ends. It keeps at most [TailLines] lines and [TailBytes] bytes. The
// zero value is empty. It is not safe for concurrent use. [Tail.Add] has the signature of
// a [LogSink] without the time.
type Tail struct {
	ring  [TailLines]string
	times [TailLines]time.Time
	from  [TailLines]Stream
	now   time.Time
	first int // index of the oldest line
	count int
	bytes int
	open  [2][]byte // by stream: the beginning of an unfinished line
}

// At sets the time of lines added from now on.
func (t *Tail) At(now time.Time) { t.now = now }

// Add adds a line or a piece of one; partial is set for all pieces except the last. If a
// line was overwritten with carriage returns, like a progress bar, Tail keeps the text
// that a screen would show.
func (t *Tail) Add(stream Stream, line []byte, partial bool) {
	open := &t.open[0]
	if stream == Stderr {
		open = &t.open[1]
	}
	if !partial {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		*open, line = (*open)[:0], line[i+1:]
	}
	if partial || len(*open) > 0 {
		*open = bothEnds(append(*open, line...), 2*tailLine)
		line = *open
	}
	if partial {
		return
	}
	t.push(stream, string(bothEnds(line, tailLine)))
	*open = (*open)[:0]
}

// bothEnds returns a line of at most limit bytes unchanged, and the beginning and end of
// a longer line.
func bothEnds(line []byte, limit int) []byte {
	if len(line) <= limit {
		return line
	}
	short := append(make([]byte, 0, tailLine), line[:tailHead]...)
	return append(append(short, tailCut...), line[len(line)-tailEnd:]...)
}

func (t *Tail) push(stream Stream, line string) {
	for t.count == TailLines || t.count > 0 && t.bytes+len(line) > TailBytes {
		t.bytes -= len(t.ring[t.first])
		t.ring[t.first] = ""
		t.first = (t.first + 1) % TailLines
		t.count--
	}
	i := (t.first + t.count) % TailLines
	t.ring[i], t.times[i], t.from[i] = line, t.now, stream
	t.count++
	t.bytes += len(line)
}

// Lines returns a copy of the lines, oldest first. Unfinished lines come last.
func (t *Tail) Lines() []string {
	out := make([]string, 0, t.count+2)
	for i := range t.count {
		out = append(out, t.ring[(t.first+i)%TailLines])
	}
	for _, open := range t.open {
		if len(open) > 0 {
			out = append(out, string(bothEnds(open, tailLine)))
		}
	}
	return out
}

// Origins returns the stream of each line of [Tail.Lines] and the time from its printing
// to the end, or -1 if unknown.
func (t *Tail) Origins(end time.Time) []endtext.Origin {
	out := make([]endtext.Origin, 0, t.count+2)
	add := func(at time.Time, stream Stream) {
		age := time.Duration(-1)
		if !at.IsZero() && !end.IsZero() {
			age = max(0, end.Sub(at))
		}
		out = append(out, endtext.Origin{Age: age, Stream: int(stream)})
	}
	for i := range t.count {
		j := (t.first + i) % TailLines
		add(t.times[j], t.from[j])
	}
	for i, open := range t.open {
		if len(open) > 0 {
			add(t.now, Stdout+Stream(i))
		}
	}
	return out
}
