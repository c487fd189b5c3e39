package lines

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzReader: a reader of a growing file never sees a part of a line, at whatever byte the file
// ends, and that it misses no line.
func FuzzReader(f *testing.F) {
	f.Add([]byte("ab\n\ncd\ne"), uint8(1))
	f.Add([]byte(strings.Repeat("x", 70000)+"\n"+strings.Repeat("y", 100)), uint8(200))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		var got []byte
		r := Reader{}
		for end := 0; ; {
			r.file = bytes.NewReader(b[:end])
			for {
				line, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				if line == nil {
					break
				}
				got = append(append(got, line...), '\n')
			}
			if end == len(b) {
				break
			}
			end = min(len(b), end+1+int(step)+len(b)/200)
		}
		want := b[:bytes.LastIndexByte(b, '\n')+1]
		if !bytes.Equal(got, want) || r.Offset() != int64(len(want)) {
			t.Errorf("%q: read %q up to %d", b, got, r.Offset())
		}
	})
}
