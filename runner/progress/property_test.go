package progress

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// shapes are lines with numbers to be drawn.
var shapes = []string{
	"\r%d%%|███▎   | %d/%d [00:%02d<00:%02d,  2.38it/s]", "\rEpoch %d: %d%%|###| %d/%d [00:%02d<00:17, 3.6it/s, v_num=%d]",
	"\r%d%%|#| %d/%d [00:0%d<?, ?it/s]", "\rMap: %d%%|█| %d/%d [00:00<00:00, 99%d examples/s]", "\n\x1b[A", "\r", "\n",
	"Epoch %d/%d\n", "\b\b\b\r\x1b[1m%d/%d\x1b[0m \x1b[32m━━\x1b[0m \x1b[1m%ds\x1b[0m %dms/step - loss: 0.%d",
	"{'loss': 0.%d, 'epoch': %d.%d}\n", "step %d/%d loss %d\n", "[%d/%d]\n", "%d%%\n", "Train: %d [%4d/%d (%d%%)]  Time: 0.%ds, %d/s\n",
	"Epoch(train) [%d][%d/%d]  lr: 1  eta: %d days, %d:10:11  time: 0.%d  data_time: 0\n", "iter %d: loss %d, time %dms\n",
	"epoch: %d, iter: %d/%d, batch_cost: 0.%d, ips: %d.5 samples/sec | ETA 00:%02d:16\n", "Epochs: %d%%|█| %d/%d [00:%02d<?, ?epoch/s]",
	"Validation: %d%%|█| %d/%d [00:%02d<00:00,  9.1it/s]", "%d it/s\n", "Trainable params: %d\n", "[rank%d]: step: %d  loss: %d tps: %d,000\n",
}

func drawn(t *rapid.T) string {
	if rapid.IntRange(0, 9).Draw(t, "noise") == 0 {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
	}
	s := rapid.SampledFrom(shapes).Draw(t, "shape")
	verbs := strings.Count(s, "%") - 2*strings.Count(s, "%%")
	numbers := make([]any, verbs)
	for i := range numbers {
		numbers[i] = rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(0, 2000), rapid.IntRange(0, math.MaxInt)).Draw(t, "n")
	}
	return fmt.Sprintf(s, numbers...)
}

// sane checks the invariants of Progress.
func sane(t interface{ Errorf(string, ...any) }, p, before Progress) {
	for name, x := range map[string]float64{"Done": p.Done, "Total": p.Total, "Rate": p.Rate, "RateError": p.RateError, "Share": p.Share, "Throughput": p.Throughput} {
		if !(x >= 0) || math.IsInf(x, 0) {
			t.Errorf("%s is %v", name, x)
		}
	}
	if p.Share > 1 || p.RateError > 1 || p.Total > 0 && p.Done > p.Total || p.Remaining < -1 || p.Remaining >= 0 && p.Total == 0 || p.Trusted != (p.Doubt == NoDoubt) {
		t.Errorf("%+v", p)
	}
	if p.Restarts == before.Restarts && p.Done < before.Done || p.Restarts < before.Restarts {
		t.Errorf("%+v after %+v", p, before)
	}
}

// TestProperties: for any input in any pieces, the invariants hold, the same bytes in other
// pieces give the same result, and memory is bounded.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, cut Reader
		at, before := start, Progress{}
		for range rapid.IntRange(1, 60).Draw(t, "writes") {
			at = at.Add(time.Duration(rapid.SampledFrom([]int{-5, 0, 1, 1, 1, 2, 30, 4000}).Draw(t, "later")) * time.Second)
			stream := rapid.SampledFrom([]Stream{Stdout, Stderr}).Draw(t, "stream")
			var b []byte
			for range rapid.IntRange(1, 4).Draw(t, "lines") {
				b = append(b, drawn(t)...)
			}
			if len(b) > 0 {
				whole.Feed(at, stream, b)
			}
			for rest := b; len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
				cut.Feed(at, stream, rest[:n])
				rest = rest[n:]
			}
			p, ok := whole.Progress(at)
			if q, also := cut.Progress(at); ok != also || p != q {
				t.Fatalf("%+v, in pieces %+v", p, q)
			}
			if ok {
				sane(t, p, before)
				before = p
			}
			if s, ok := whole.Since(start); ok && !(s.Rate > 0 && s.Error >= 0 && s.Error <= 1 && s.Intervals > 0 && s.Seconds > 0) {
				t.Errorf("%+v", s)
			}
		}
		bounded(t, &cut)
	})
}

// bounded checks that a reader has not grown.
func bounded(t interface{ Errorf(string, ...any) }, r *Reader) {
	size := int(unsafe.Sizeof(*r)) + cap(r.clean) + cap(r.lines[0].text) + cap(r.lines[1].text)
	for _, k := range r.count.list {
		size += len(k.name)
	}
	if size > 48<<10 {
		t.Errorf("a reader has %d bytes", size)
	}
}

// TestLongLine checks that only the beginning of a very long line is kept, and that the next
// line is read.
func TestLongLine(t *testing.T) {
	var r Reader
	for i := range 3000 {
		r.Feed(start.Add(time.Duration(i)*time.Millisecond), Stdout, bytes.Repeat([]byte("step 7/9 "), 1000))
	}
	r.Feed(start.Add(4*time.Second), Stdout, []byte("\nstep 10/40\n"))
	r.Feed(start.Add(5*time.Second), Stdout, []byte("step 11/40\n"))
	r.Feed(start.Add(6*time.Second), Stdout, []byte("step 12/40\n"))
	if p, ok := r.Progress(start.Add(6 * time.Second)); !ok || p.Total != 40 {
		t.Errorf("%+v", p)
	}
	bounded(t, &r)
}

func FuzzFeed(f *testing.F) {
	files, err := filepath.Glob("testdata/*.rec")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		var b []byte
		for _, p := range recording(f, strings.TrimSuffix(filepath.Base(file), ".rec"), 1) {
			if b = append(b, p.text...); len(b) > 2000 {
				break
			}
		}
		f.Add(b, uint16(37), uint16(700))
	}
	f.Fuzz(func(t *testing.T, b []byte, piece, millis uint16) {
		var r, other Reader
		at, before := start, Progress{}
		for len(b) > 0 {
			n := min(len(b), 1+int(piece))
			at = at.Add(time.Duration(millis) * time.Millisecond)
			r.Feed(at, Stdout, b[:n])
			other.Feed(at, Stdout, b[:n/2])
			other.Feed(at, Stdout, b[n/2:n])
			b = b[n:]
			p, ok := r.Progress(at)
			if ok {
				sane(t, p, before)
				before = p
			}
			if q, _ := other.Progress(at); p != q {
				t.Fatalf("%+v, in pieces %+v", p, q)
			}
		}
		bounded(t, &r)
	})
}

// benchmarkOutput feeds a program's output at 100 MB/s, or as fast as it was printed if
// slow, and reports the cost of a MB.
func benchmarkOutput(b *testing.B, output []byte, perSecond int) {
	const chunk = 16 << 10
	var r Reader
	at := start
	b.SetBytes(int64(len(output)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := output; len(rest) > 0; {
			n := min(len(rest), chunk)
			at = at.Add(time.Duration(float64(n) / float64(perSecond) * float64(time.Second)))
			r.Feed(at, Stdout, rest[:n])
			rest = rest[n:]
		}
	}
}

func BenchmarkFlood(b *testing.B) {
	b.Run("text", func(b *testing.B) {
		benchmarkOutput(b, bytes.Repeat([]byte("DEBUG the quick brown fox jumps over the lazy dog, and again\n"), 1<<14), 100e6)
	})
	b.Run("bars", func(b *testing.B) {
		benchmarkOutput(b, bytes.Repeat([]byte("\r  3%|▎         | 120/4000 [00:50<27:10,  2.38it/s, loss=0.51]"), 1<<14), 100e6)
	})
	b.Run("binary", func(b *testing.B) {
		file, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		output, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		benchmarkOutput(b, output[:1<<20], 100e6)
	})
}

// BenchmarkTraining is a bar printed ten times a second, as tqdm does, of which
// every line is parsed.
func BenchmarkTraining(b *testing.B) {
	for _, name := range []string{"hf_v5", "megatron", "timm", "keras3", "mmengine"} {
		b.Run(name, func(b *testing.B) {
			var output []byte
			for _, p := range recording(b, name, 1) {
				output = append(output, p.text...)
			}
			benchmarkOutput(b, output, 2000)
		})
	}
}

func BenchmarkProgress(b *testing.B) {
	var r Reader
	for i := range 4000 {
		r.Feed(start.Add(time.Duration(i)*time.Second), Stdout, fmt.Appendf(nil, "step %d/5000\n", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Progress(start.Add(4000 * time.Second))
	}
}
