package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
)

var t0 = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

const stampLayout = "2006-01-02T15:04:05.000000000Z07:00" // the engine's

// logEntry returns an entry as the engine sends it.
func logEntry(stream containers.Stream, at time.Duration, text string) *frame {
	return &frame{stream: stream, data: []byte(t0.Add(at).Format(stampLayout) + " " + text)}
}

type sent struct {
	at     time.Time
	stream containers.Stream
	text   string
}

// reader reads a log through cursors and records what they send.
type reader struct{ got []sent }

func (r *reader) sink(at time.Time, stream containers.Stream, line []byte, partial bool) {
	end := "\n"
	if partial {
		end = ""
	}
	r.got = append(r.got, sent{at, stream, string(line) + end})
}

func (r *reader) texts() (out []string) {
	for _, s := range r.got {
		out = append(out, s.text)
	}
	return out
}

// randomLog returns a log with all irregularities of real logs: streams out of order, long
// lines in pieces with one time and other lines in between, a clock set back.
func randomLog(rng *rand.Rand, n int) []*frame {
	var log []*frame
	now := time.Duration(0)
	open := map[containers.Stream]time.Duration{}
	for i := range n {
		stream := containers.Stdout + containers.Stream(rng.IntN(2))
		now += time.Duration(rng.IntN(3))
		if rng.IntN(40) == 0 {
			now -= time.Hour
		}
		at, long := open[stream]
		if !long {
			at = now - time.Duration(rng.IntN(5))
		}
		end := "\n"
		if delete(open, stream); rng.IntN(4) == 0 {
			open[stream], end = at, ""
		}
		log = append(log, logEntry(stream, at, fmt.Sprintf("%d%s", i, end)))
	}
	return log
}

func pass(t *testing.T, c *cursor, log []*frame) {
	t.Helper()
	for _, f := range log {
		if err := c.entry(f, false); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCursorResumesAnywhere(t *testing.T) {
	for trial := range uint64(60) {
		rng := rand.New(rand.NewPCG(trial, 1))
		log := randomLog(rng, 80)
		var all reader
		whole := newCursor(time.Time{}, all.sink)
		pass(t, whole, log)
		whole.finish()
		for i, s := range all.got {
			if i > 0 && !s.at.After(all.got[i-1].at) {
				t.Fatalf("trial %d: entry %d at %v is not after %v", trial, i, s.at, all.got[i-1].at)
			}
			var rest reader // another process, which knows only the time
			c := newCursor(s.at, rest.sink)
			pass(t, c, log)
			c.finish()
			if !slices.Equal(rest.got, all.got[i+1:]) {
				t.Fatalf("trial %d: after entry %d: %d entries, want %d", trial, i, len(rest.got), len(all.got)-i-1)
			}
		}
	}
}

func TestCursorFindsItsPlaceInTheTail(t *testing.T) {
	for trial := range uint64(60) {
		rng := rand.New(rand.NewPCG(trial, 2))
		log := randomLog(rng, 80)
		var all, parts reader
		pass(t, newCursor(time.Time{}, all.sink), log)
		c := newCursor(time.Time{}, parts.sink)
		for have := 0; have < len(log); {
			from := 0
			if c.placed() {
				from = rng.IntN(have - 1) // the tail has at least the last two entries
				c.seek()
			} else {
				c.rewind()
			}
			have = min(have+1+rng.IntN(20), len(log))
			pass(t, c, log[from:have])
			if c.seeking {
				t.Fatalf("trial %d: lost in the tail from %d to %d", trial, from, have)
			}
		}
		if !slices.Equal(parts.got, all.got) {
			t.Fatalf("trial %d: %d entries, want %d", trial, len(parts.got), len(all.got))
		}
	}
}

func TestCursorLost(t *testing.T) {
	log := randomLog(rand.New(rand.NewPCG(3, 3)), 50)
	c := newCursor(time.Time{}, new(reader).sink)
	pass(t, c, log[:20])
	c.seek()
	pass(t, c, log[21:])
	if !c.seeking {
		t.Error("found a place that is not there")
	}
}

func TestCursorSeesRepetition(t *testing.T) {
	log := []*frame{
		logEntry(containers.Stdout, 1, "a\n"), logEntry(containers.Stderr, 2, "b\n"),
		logEntry(containers.Stdout, 3, "long"), logEntry(containers.Stdout, 3, "er\n"),
	}
	for i, again := range log {
		var r reader
		c := newCursor(time.Time{}, r.sink)
		pass(t, c, log)
		if err := c.entry(again, true); !errors.Is(err, errWentBack) {
			t.Errorf("entry %d again: %v, want errWentBack", i, err)
		}
		if len(r.got) != len(log) {
			t.Errorf("entry %d was sent twice", i)
		}
	}
	// A new log file may begin with several pieces of one line.
	pieces := []*frame{logEntry(1, 3, "a"), logEntry(1, 3, "b"), logEntry(1, 3, "c")}
	repeating := newCursor(time.Time{}, new(reader).sink)
	pass(t, repeating, pieces)
	if err := repeating.entry(pieces[1], true); !errors.Is(err, errWentBack) {
		t.Errorf("a piece again: %v, want errWentBack", err)
	}
	// The other stream may be late, and pieces share a time.
	c := newCursor(time.Time{}, new(reader).sink)
	for _, f := range []*frame{logEntry(1, 5, "x\n"), logEntry(2, 4, "y\n"), logEntry(1, 6, "p"), logEntry(1, 6, "q"), logEntry(1, 6, "r\n")} {
		if err := c.entry(f, true); err != nil {
			t.Errorf("%s: %v", f.data, err)
		}
	}
}

func TestCursorSplitsHugeEntries(t *testing.T) {
	var r reader
	c := newCursor(time.Time{}, r.sink)
	text := strings.Repeat("0123456789", 20_000)
	pass(t, c, []*frame{logEntry(1, 0, text+"\n")})
	if got := strings.Join(r.texts(), ""); got != text+"\n" || len(r.got) != 4 {
		t.Errorf("%d pieces of together %d bytes, want 4 of %d", len(r.got), len(got), len(text)+1)
	}
}

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	for _, s := range []string{"one", "", "three"} {
		head := [8]byte{1}
		binary.BigEndian.PutUint32(head[4:], uint32(len(s)))
		b.Write(head[:])
		b.WriteString(s)
	}
	whole := b.Bytes()
	for cut := range len(whole) + 1 {
		r := bufio.NewReader(bytes.NewReader(whole[:cut]))
		var f frame
		var err error
		for err == nil {
			err = f.read(r)
		}
		want := io.ErrUnexpectedEOF
		if cut == 0 || cut == 11 || cut == 19 || cut == len(whole) {
			want = io.EOF
		}
		if err != want {
			t.Errorf("cut at %d: %v, want %v", cut, err, want)
		}
	}
	var f frame
	if err := f.read(bufio.NewReader(strings.NewReader("\x01\x00\x00\x00\xff\xff\xff\xffx"))); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("impossible length: %v", err)
	}
}
