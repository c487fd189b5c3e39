package allocator

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Event is one line of a recorded training: a block that is allocated or freed,
// the size of a parameter, a mark, or a convolution.
type Event struct {
	Op Op
	// ID is the number of a block. Bytes is the size of the block or parameter.
	ID, Bytes int64
	// In and Out are the bytes that a convolution reads and writes. Weight is the size of
	// its weights in bytes. The convolution is called Calls times. A dense convolution may
	// need a workspace.
	In, Out, Weight, Calls int64
	Dense                  bool
	// Name is the name of a mark: model, iterN, bwdN, stepN, end. The optimizer runs at
	// stepN.
	Name string
}

// Op is the kind of an event.
type Op byte

// Operations, by their letter in a trace.
const (
	Parameter   Op = 'p' // p BYTES
	Allocate    Op = 'a' // a ID BYTES
	Release     Op = 'f' // f ID
	Mark        Op = 'm' // m NAME
	Convolution Op = 'c' // c IN OUT WEIGHT CALLS dense|plain
)

// TraceHeader is the first line of a trace.
const TraceHeader = "carma-events 1"

// Limits of a trace.
const (
	maxEvents = 5_000_000
	maxLine   = 256
)

// ReadTrace reads a trace. An error names the line.
func ReadTrace(r io.Reader) ([]Event, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, maxLine), maxLine)
	if !in.Scan() {
		return nil, errors.Join(fmt.Errorf("line 1: a trace begins with %q", TraceHeader), in.Err())
	}
	if in.Text() != TraceHeader {
		return nil, fmt.Errorf("line 1: %q, but a trace begins with %q", in.Text(), TraceHeader)
	}
	var events []Event
	for line := 2; in.Scan(); line++ {
		if in.Text() == "" || strings.HasPrefix(in.Text(), "#") {
			continue
		}
		if len(events) == maxEvents {
			return nil, fmt.Errorf("line %d: a trace has at most %d events", line, maxEvents)
		}
		e, err := parseEvent(strings.Fields(in.Text()))
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", line, in.Text(), err)
		}
		events = append(events, e)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("after %d events: %w", len(events), err)
	}
	return events, nil
}

// fields contains the number of fields of each operation, including its letter.
var fields = map[Op]int{Parameter: 2, Allocate: 3, Release: 2, Mark: 2, Convolution: 6}

func parseEvent(f []string) (Event, error) {
	if len(f) == 0 || len(f[0]) != 1 {
		return Event{}, errors.New("want an operation: p, a, f, m or c")
	}
	e := Event{Op: Op(f[0][0])}
	n, ok := fields[e.Op]
	if !ok {
		return Event{}, fmt.Errorf("unknown operation %s; there are p, a, f, m and c", f[0])
	}
	if len(f) != n {
		return Event{}, fmt.Errorf("operation %s has %d fields, not %d", f[0], n-1, len(f)-1)
	}
	switch e.Op {
	case Mark:
		e.Name = f[1]
		return e, nil
	case Parameter:
		return e, number(f[1], &e.Bytes)
	case Allocate:
		return e, errors.Join(number(f[1], &e.ID), number(f[2], &e.Bytes))
	case Release:
		return e, number(f[1], &e.ID)
	}
	if e.Dense = f[5] == "dense"; !e.Dense && f[5] != "plain" {
		return Event{}, fmt.Errorf("a convolution is dense or plain, not %s", f[5])
	}
	return e, errors.Join(number(f[1], &e.In), number(f[2], &e.Out), number(f[3], &e.Weight), number(f[4], &e.Calls))
}

func number(s string, to *int64) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > MaxRequest {
		return fmt.Errorf("%q is not a number from 0 to 2^50", s)
	}
	*to = n
	return nil
}
