package allocator

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestTracesGiveTheReferencePeaks replays every recorded training, with and
// without workspaces, and compares with the reference simulator's peaks.
func TestTracesGiveTheReferencePeaks(t *testing.T) {
	f, err := os.Open("testdata/peaks.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	traces := 0
	for in := bufio.NewScanner(f); in.Scan(); {
		if strings.HasPrefix(in.Text(), "#") {
			continue
		}
		var name string
		var allocated float64
		var without, with int64
		if _, err := fmt.Sscan(in.Text(), &name, &allocated, &without, &with); err != nil {
			t.Fatal(err)
		}
		traces++
		events := readTrace(t, name)
		got := replayed(t, events, 0)
		if mib := float64(got.PeakAllocated) / (1 << 20); math.Abs(mib-allocated) > 0.0006 { // the reference has three decimals
			t.Errorf("%s: %.3f MiB allocated, want %.3f", name, mib, allocated)
		}
		if got.PeakReserved != without<<20 {
			t.Errorf("%s: %d bytes reserved, want %d MiB", name, got.PeakReserved, without)
		}
		if got := replayed(t, events, 2); got.PeakReserved != with<<20 {
			t.Errorf("%s with workspaces: %d bytes reserved, want %d MiB", name, got.PeakReserved, with)
		}
	}
	if traces != 11 {
		t.Errorf("%d traces, want 11", traces)
	}
}

func replayed(t *testing.T, events []Event, workspace float64) Stats {
	t.Helper()
	s, err := Replay(events, Training{
		CuBLAS: 8_519_680, States: 2, Copies: 1, Activations: workspace, Weights: workspace,
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readTrace(t testing.TB, name string) []Event {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".events.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	events, err := ReadTrace(z)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestBadTracesAreRefusedByLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "line 1: a trace begins with"},
		{"op,a,b\n", `line 1: "op,a,b", but a trace begins with`},
		{"a 1 512\nx 1\n", `line 3: "x 1": unknown operation x`},
		{"a 1\n", `operation a has 2 fields, not 1`},
		{"a 1 -5\n", `"-5" is not a number`},
		{"a 1 99999999999999999999\n", "is not a number"},
		{"c 1 1 1 1 thick\n", "dense or plain, not thick"},
	} {
		text := c.text
		if text != "" && !strings.HasPrefix(text, "op") {
			text = TraceHeader + "\n" + text
		}
		if _, err := ReadTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}

func TestReplayRefusesBlocksThatAreNotThere(t *testing.T) {
	for _, text := range []string{"f 1\n", "a 1 512\na 1 512\n", "a 1 512\nf 1\nf 1\n"} {
		events, err := ReadTrace(strings.NewReader(TraceHeader + "\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Replay(events, Training{}, Options{}); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(TraceHeader + "\np 512\na 1 1048577\nm step0\nc 10 20 30 2 dense\nf 1\nm step1\n")
	f.Add("carma-events 1\na 1 1125899906842624\na 2 1125899906842624\n")
	f.Fuzz(func(t *testing.T, text string) {
		events, err := ReadTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		s, err := Replay(events, Training{States: 2, Copies: 1, Activations: 1}, Options{Limit: 1 << 40})
		if err == nil && (s.Allocated > s.Reserved || s.PeakReserved > 1<<40) {
			t.Errorf("allocated %d, reserved %d, peak %d", s.Allocated, s.Reserved, s.PeakReserved)
		}
	})
}

func BenchmarkReplayResNet50(b *testing.B) {
	events := readTrace(b, "resnet50_32")
	for b.Loop() {
		if _, err := Replay(events, Training{CuBLAS: 8_519_680, States: 2, Copies: 1}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
