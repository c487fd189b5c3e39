package containers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTailBounds(t *testing.T) {
	var tail Tail
	for i := range 1000 {
		tail.Add(Stdout, fmt.Appendf(nil, "line %d", i), false)
	}
	got := tail.Lines()
	if len(got) != TailLines || got[0] != "line 600" || got[len(got)-1] != "line 999" {
		t.Errorf("%d lines from %q to %q", len(got), got[0], got[len(got)-1])
	}
	for i := range 1000 {
		tail.Add(Stderr, fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", 100_000)), false)
	}
	size := 0
	for _, l := range tail.Lines() {
		size += len(l)
	}
	if size > TailBytes || size < TailBytes*9/10 {
		t.Errorf("%d bytes kept, limit %d", size, TailBytes)
	}
}

func TestTailLines(t *testing.T) {
	type piece struct {
		stream  Stream
		text    string
		partial bool
	}
	tests := map[string]struct {
		in   []piece
		want []string
	}{
		"empty":       {nil, []string{}},
		"empty lines": {[]piece{{1, "", false}, {2, "", false}}, []string{"", ""}},
		"pieces of two streams": {
			[]piece{{1, "a", true}, {2, "x", true}, {1, "b", false}, {2, "y", true}, {2, "", false}, {1, "c", false}},
			[]string{"ab", "xy", "c"}},
		"not ended":           {[]piece{{1, "a", false}, {2, "err", true}, {1, "out", true}}, []string{"a", "out", "err"}},
		"windows":             {[]piece{{1, "a\r", false}}, []string{"a"}},
		"progress bar":        {[]piece{{2, " 10%\r 20%\r 30%", false}}, []string{" 30%"}},
		"progress in pieces":  {[]piece{{2, " 10%\r 2", true}, {2, "0%\r 3", true}, {2, "0%Traceback", false}}, []string{" 30%Traceback"}},
		"return at piece end": {[]piece{{2, " 10%\r", true}, {2, "done", false}}, []string{"done"}},
		"long":                {[]piece{{1, strings.Repeat("a", 3*tailLine), true}, {1, "bcd", true}, {1, "e", false}, {1, "f", false}}, []string{strings.Repeat("a", tailHead) + tailCut + strings.Repeat("a", tailEnd-4) + "bcde", "f"}},
		"long, not ended":     {[]piece{{1, strings.Repeat("a", 2*tailLine-1), true}}, []string{strings.Repeat("a", tailHead) + tailCut + strings.Repeat("a", tailEnd)}},
	}
	for name, tc := range tests {
		var tail Tail
		for _, p := range tc.in {
			tail.Add(p.stream, []byte(p.text), p.partial)
		}
		if got := tail.Lines(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func BenchmarkTail(b *testing.B) {
	var tail Tail
	line := []byte("step  1200 | loss 1.3000 | lr 3.0e-04 | 1.92 it/s")
	b.ReportAllocs()
	for b.Loop() {
		tail.Add(Stdout, line, false)
	}
}

func BenchmarkClassify(b *testing.B) {
	s := readSample(b, "testdata/tails/tensorflow.txt")
	for b.Loop() {
		Classify(s.exit, s.lines, s.facts)
	}
}

// TestBufferedOutput: output that was buffered on another stream may follow the exception that
// ended the program, and is no evidence that the program continued. Progress lines on the same
// stream are evidence.
func TestBufferedOutput(t *testing.T) {
	end := time.Unix(100, 0)
	for name, row := range map[string]struct {
		stream Stream
		before time.Duration
		want   Class
	}{
		"buffered":          {Stdout, 10 * time.Millisecond, ClassGPUOOM},
		"of the same":       {Stderr, 10 * time.Millisecond, ClassProgram},
		"long before":       {Stdout, time.Minute, ClassProgram},
		"time is not known": {Stdout, -1, ClassProgram},
	} {
		var tail Tail
		if row.before >= 0 {
			tail.At(end.Add(-row.before))
		}
		for _, l := range []string{"Traceback (most recent call last):", `  File "train.py", line 3, in <module>`, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."} {
			tail.Add(Stderr, []byte(l), false)
		}
		for i := range 40 {
			tail.Add(row.stream, fmt.Appendf(nil, "step %d loss 0.%d", i, i), false)
		}
		exit := Exit{Code: 1, Started: time.Unix(1, 0), Finished: end}
		if v := Classify(exit, tail.Lines(), Facts{Origins: tail.Origins(end)}); v.Class != row.want {
			t.Errorf("%s: %s, want %s", name, v.Class, row.want)
		}
	}
}
