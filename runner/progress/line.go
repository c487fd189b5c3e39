package progress

import "bytes"

// maxLine is the number of bytes of a line that are kept; the rest is skipped. The
// longest observed bars, with ten metrics behind them, have about 400 bytes.
const maxLine = 4096

// lineBuffer contains the unfinished line of one stream.
type lineBuffer struct {
	text []byte
	at   float64 // when its last visible byte came
	esc  int     // position in an escape sequence at which the text ends; see visible
	read bool    // the text was read before its line ended; see [Reader.Standing]
}

// add appends the part of b that still fits.
func (l *lineBuffer) add(b []byte, at float64) {
	if len(b) == 0 {
		return
	}
	if shown := l.visible(b); shown || len(l.text) == 0 {
		l.at, l.read = at, false
	}
	if room := maxLine - len(l.text); len(b) > room {
		b = b[:room]
	}
	l.text = append(l.text, b...)
}

// visible reports whether a piece has visible characters. Keras writes backspaces, and
// tqdm moves the cursor, just before the next line.
func (l *lineBuffer) visible(b []byte) bool {
	const outside, begun, within = 0, 1, 2
	shown := false
	for _, c := range b {
		switch {
		case c == 0x1b:
			l.esc = begun
		case l.esc == begun && c == '[':
			l.esc = within
		case l.esc == begun, l.esc == within && c >= 0x40 && c <= 0x7e:
			l.esc = outside
		case l.esc == outside && c > ' ' && c != 0x7f:
			shown = true
		}
	}
	return shown
}

func (l *lineBuffer) clear() { l.text, l.esc, l.read = l.text[:0], 0, false }

// lineEnd returns the position of the first \n or \r of a chunk, or -1.
func lineEnd(chunk []byte) int {
	end := bytes.IndexByte(chunk, '\n')
	if end >= 0 {
		chunk = chunk[:end]
	}
	if i := bytes.IndexByte(chunk, '\r'); i >= 0 {
		return i
	}
	return end
}

// graphic replaces a run of characters outside ASCII: bars, dots, arrows.
const graphic = 1

// clean appends a line to to in the form for parsers. It removes escape sequences and control
// characters, converts letters to lower case, and replaces each run of non-ASCII characters by
// one byte, graphic.
func clean(to, line []byte) []byte {
	for i := 0; i < len(line); i++ {
		b := line[i]
		switch {
		case b == 0x1b:
			i += escape(line[i:]) - 1
		case b == '\t':
			to = append(to, ' ')
		case b < ' ' || b == 0x7f:
		case b >= 0x80:
			if n := len(to); n == 0 || to[n-1] != graphic {
				to = append(to, graphic)
			}
		case 'A' <= b && b <= 'Z':
			to = append(to, b+'a'-'A')
		default:
			to = append(to, b)
		}
	}
	return to
}

// escape returns the length of the escape sequence that b begins with (ECMA-48): ESC [
// parameters final, ESC ] text BEL, or ESC and one byte.
func escape(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case ']':
		for i := 2; i < len(b); i++ {
			if b[i] == 7 || b[i] == 0x1b {
				return i + 1
			}
		}
		return len(b)
	}
	return 2
}

// hints are the texts that mark a line as counting something, beside digits, if it has
// neither a slash nor a percent sign.
var hints = [][]byte{[]byte("step"), []byte("epoch"), []byte("iter"), []byte("it ["), []byte("param"), []byte("remaining"), []byte(" left"), []byte("fold"), []byte("trial"), []byte("round"),
	[]byte("iters"), []byte("up. "), []byte("eta"), []byte("kimg")}

// promising reports whether a clean line may contain progress. It only searches bytes,
// before any parsing, and rejects most output.
func promising(text []byte) bool {
	if !bytes.ContainsAny(text, "0123456789") {
		return false
	}
	if bytes.IndexByte(text, '/') >= 0 || bytes.IndexByte(text, '%') >= 0 {
		return true
	}
	for _, h := range hints {
		if bytes.Contains(text, h) {
			return true
		}
	}
	if text[0] == '[' && len(text) > 2 && text[1] >= '0' && text[1] <= '9' && bytes.IndexByte(text[:min(len(text), 12)], ']') > 0 { // [120] train-rmse:0.5
		return true
	}
	return bytes.Contains(text, []byte("s [")) // tqdm without a total: 12images [00:10,
}
