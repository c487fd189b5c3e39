package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/runner/tasklog"
)

// TestPieces checks that the small pieces of a progress bar are joined in the log, with
// unchanged text and order. After a kill, the engine delivers the pieces again that were not
// written yet.
func TestPieces(t *testing.T) {
	s := tasklog.Open(t.TempDir(), 0)
	out, err := s.Writer(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	at, p := time.Unix(1000, 0), &pieces{out: out}
	write := func(stream containers.Stream, text string, partial bool) {
		t.Helper()
		at = at.Add(time.Second)
		if err := p.write(at, stream, []byte(text), partial); err != nil {
			t.Fatal(err)
		}
	}
	var bar strings.Builder
	for i := range 2000 {
		text := fmt.Sprintf("\r%4d/2000 [step]", i)
		bar.WriteString(text)
		write(containers.Stderr, text, true)
	}
	write(containers.Stdout, "loss 1.5", false)
	write(containers.Stderr, "\rlast", true)
	write(containers.Stderr, "", false)
	write(containers.Stderr, "", false)
	write(containers.Stdout, strings.Repeat("x", pieceBytes), true)
	before := at
	write(containers.Stdout, "tail", true)
	if got := out.Since(); !got.Equal(before) {
		t.Errorf("a daemon that is killed now reads on from %v, want %v", got, before)
	}
	if err := p.flush(); err != nil {
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
	if want := bar.String() + "\rlast\n\n"; got[containers.Stderr].String() != want {
		t.Errorf("stderr has %d bytes, want %d", got[containers.Stderr].Len(), len(want))
	}
	if want := "loss 1.5\n" + strings.Repeat("x", pieceBytes) + "tail"; got[containers.Stdout].String() != want {
		t.Errorf("stdout has %d bytes, want %d", got[containers.Stdout].Len(), len(want))
	}
	if most := bar.Len()/(pieceBytes-32) + 7; len(lines) > most {
		t.Errorf("%d pieces, want at most %d", len(lines), most)
	}
}
