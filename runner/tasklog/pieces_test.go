package tasklog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPieces checks that the small pieces of a progress bar are joined in the log, with
// unchanged text and order. After a kill, the engine delivers the pieces again that were not
// written yet.
func TestPieces(t *testing.T) {
	s := Open(t.TempDir(), 0)
	out, err := s.Writer(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	at, p := time.Unix(1000, 0), NewPieces(out)
	write := func(stream Stream, text string, partial bool) {
		t.Helper()
		at = at.Add(time.Second)
		if err := p.Write(at, stream, []byte(text), partial); err != nil {
			t.Fatal(err)
		}
	}
	var bar strings.Builder
	for i := range 2000 {
		text := fmt.Sprintf("\r%4d/2000 [step]", i)
		bar.WriteString(text)
		write(Stderr, text, true)
	}
	write(Stdout, "loss 1.5", false)
	write(Stderr, "\rlast", true)
	write(Stderr, "", false)
	write(Stderr, "", false)
	write(Stdout, strings.Repeat("x", PieceBytes), true)
	before := at
	write(Stdout, "tail", true)
	if got := out.Since(); !got.Equal(before) {
		t.Errorf("a daemon that is killed now reads on from %v, want %v", got, before)
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	lines, err := s.Tail(1, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got [3]strings.Builder
	for i, l := range lines {
		if i > 0 && !l.At.After(lines[i-1].At) {
			t.Errorf("piece %d is of %v, after %v", i, l.At, lines[i-1].At)
		}
		got[l.Stream].Write(l.Text)
		if !l.Partial {
			got[l.Stream].WriteByte('\n')
		}
	}
	if want := bar.String() + "\rlast\n\n"; got[Stderr].String() != want {
		t.Errorf("stderr has %d bytes, want %d", got[Stderr].Len(), len(want))
	}
	if want := "loss 1.5\n" + strings.Repeat("x", PieceBytes) + "tail"; got[Stdout].String() != want {
		t.Errorf("stdout has %d bytes, want %d", got[Stdout].Len(), len(want))
	}
	if most := bar.Len()/(PieceBytes-32) + 7; len(lines) > most {
		t.Errorf("%d pieces, want at most %d", len(lines), most)
	}
}
