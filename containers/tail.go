package containers

import "bytes"

// Limits of a [Tail], in lines and bytes.
const (
	TailLines = 400
	TailBytes = 128 << 10
	// tailLine is how many bytes of one line are kept, from its beginning.
	tailLine = 4 << 10
)

// Tail keeps the last lines of a container's output for [Classify], of both
// streams, in the order in which they ended. It keeps at most [TailLines] lines
// and [TailBytes] bytes. The zero value is empty. It is not safe for concurrent
// use. [Tail.Add] has the signature of a [LogSink] without the time.
type Tail struct {
	ring  [TailLines]string
	first int // index of the oldest line
	count int
	bytes int
	open  [2][]byte // by stream: the beginning of an unfinished line
}

// Add takes a line or a piece of one; partial is set for all pieces but the last.
// If a line was overwritten by carriage returns, like a progress bar, Tail keeps
// the text that a screen would show.
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
		if room := tailLine - len(*open); room > 0 {
			*open = append(*open, line[:min(room, len(line))]...)
		}
		line = *open
	}
	if partial {
		return
	}
	t.push(string(line[:min(len(line), tailLine)]))
	*open = (*open)[:0]
}

func (t *Tail) push(line string) {
	for t.count == TailLines || t.count > 0 && t.bytes+len(line) > TailBytes {
		t.bytes -= len(t.ring[t.first])
		t.ring[t.first] = ""
		t.first = (t.first + 1) % TailLines
		t.count--
	}
	t.ring[(t.first+t.count)%TailLines] = line
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
			out = append(out, string(open))
		}
	}
	return out
}
