package progress

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// piece is the text of one write.
type piece struct {
	at   time.Duration
	text string
}

// recording reads a file of testdata: lines of seconds and a quoted string, and
// comments. Times are multiplied by scale.
func recording(t testing.TB, name string, scale float64) []piece {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".rec"))
	if err != nil {
		t.Fatal(err)
	}
	return parseRecording(t, name, b, scale)
}

// parseRecording returns the pieces of a recording's text.
func parseRecording(t testing.TB, name string, b []byte, scale float64) []piece {
	t.Helper()
	var pieces []piece
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		seconds, quoted, _ := strings.Cut(line, " ")
		at, err := strconv.ParseFloat(seconds, 64)
		if err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		pieces = append(pieces, piece{time.Duration(at * scale * float64(time.Second)), text})
	}
	return pieces
}

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// sample is the expected result of a recording.
type sample struct {
	name string
	// at is the time of the check, as a share of the recording's time.
	at          float64
	done, total float64
	unit        string
	epoch       float64
	epochs      float64
	rate        float64 // 0 for none; else within 10 %
	source      Form
	params      Parameters
	per         string
	doubt       Doubt
}

// Recordings of a few seconds are played slower, so that they last as long as
// a training.
var slower = map[string]float64{
	"hf": 60, "keras3": 60, "keras3_verbose2": 60, "lightning": 60, "tqdm_epochs": 60, "tqdm_label": 60, "tqdm_nested": 60, "tqdm_open": 60,
}

var samples = []sample{
	{"bare", 0.75, 725, 1000, Steps, 0, 0, 5, Bare, Parameters{}, "", PerhapsOf},
	{"detectron2", 0.75, 1119, 1499, Steps, 0, 0, 2.86, Words, Parameters{}, "", NoDoubt},
	{"epochs_only", 0.75, 15, 20, EpochsU, 15, 20, 1. / 60, Epochs, Parameters{}, "", NoDoubt},
	{"fairseq", 0.75, 1891 + 950, 0, Steps, 2, 0, 2, Brackets, Parameters{}, Tokens, NoDoubt},
	{"fairseq_json", 0.75, 4500, 0, Steps, 0, 0, 3.33, Dictionary, Parameters{}, "", NoDoubt},
	{"figure", 0.75, 276000, 0, Tokens, 0, 0, 1250, Figure, Parameters{}, Tokens, NoDoubt},
	{"hf", 0.75, 90, 120, Steps, 0, 0, 0.331, Trainer, Parameters{6751015936, 12600000}, "", NoDoubt},
	{"hf_notqdm", 0.75, 2.25, 3, EpochsU, 3, 3, 0.01, Dictionary, Parameters{0, 66955010}, "", NoDoubt},
	{"hf_v5", 0.75, 300, 400, Steps, 0, 0, 2, Trainer, Parameters{}, "", NoDoubt},
	{"keras2", 0.75, 224, 300, Steps, 3, 3, 2, Keras, Parameters{}, "", NoDoubt},
	{"keras3", 1, 180, 180, Steps, 4, 4, 0.62, Keras, Parameters{1994, 1994}, "", PastEnd},
	{"keras3_verbose2", 1, 360, 360, Steps, 8, 8, 1.19, Keras, Parameters{}, "", NoDoubt},
	{"lightning", 0.75, 148, 0, Steps, 3, 0, 0.551, Lightning, Parameters{25.6e6, 23.5e6}, "", NoDoubt},
	{"megatron", 0.75, 90, 500, Steps, 0, 0, 1 / 3.1, Words, Parameters{354871296, 0}, "", NoDoubt},
	{"mmcv", 0.75, 1500, 12000, Steps, 2, 0, 1.67, Brackets, Parameters{}, "", NoDoubt},
	{"mmengine", 0.75, 1800, 2400, Steps, 3, 0, 4.17, Brackets, Parameters{}, "", NoDoubt},
	{"mmengine_iter", 0.75, 3000, 4000, Steps, 0, 0, 5, Words, Parameters{}, "", NoDoubt},
	{"mnist", 0.75, 136640, 0, Samples, 3, 0, 5333, Brackets, Parameters{}, "", NoDoubt},
	{"nanogpt", 0.75, 740, 0, Steps, 0, 0, 7.69, Words, Parameters{124318464, 0}, "", NoDoubt},
	{"paddle", 0.75, 860, 2000, Steps, 5, 0, 3.33, Brackets, Parameters{}, Images, NoDoubt},
	{"paddleseg", 0.75, 360, 500, Steps, 4, 0, 2, Words, Parameters{}, Samples, NoDoubt},
	{"percent", 0.75, 75, 100, Shares, 0, 0, 0.167, Percent, Parameters{}, "", NoDoubt},
	{"plain", 0.75, 1480, 2000, Steps, 0, 0, 4, Words, Parameters{}, "", NoDoubt},
	{"plain_epochs", 0.75, 1500, 2000, Steps, 3, 4, 5, Words, Parameters{}, "", NoDoubt},
	{"rich", 0.75, 180, 240, Steps, 3, 4, 2, Rich, Parameters{}, "", NoDoubt},
	{"timm", 0.75, 1500, 0, Steps, 4, 0, 4.54, Brackets, Parameters{25557032, 0}, Images, NoDoubt},
	{"torchtitan", 0.75, 44, 0, Steps, 0, 0, 0.61, Words, Parameters{}, Tokens, NoDoubt},
	{"torchvision", 0.75, 270, 0, Steps, 3, 0, 2.5, Brackets, Parameters{}, Images, NoDoubt},
	{"tqdm_epochs", 0.75, 106, 150, Steps, 4, 5, 0.52, Tqdm, Parameters{}, "", NoDoubt},
	{"tqdm_label", 0.75, 112, 150, Steps, 3, 3, 0.547, Tqdm, Parameters{}, "", NoDoubt},
	{"tqdm_nested", 0.75, 112, 160, Steps, 3, 4, 0.52, Tqdm, Parameters{}, "", NoDoubt},
	{"tqdm_open", 0.75, 104, 0, Steps, 0, 0, 0.552, Tqdm, Parameters{}, "", NoDoubt},
	{"yolo", 0.75, 228, 300, Steps, 4, 5, 2, YOLO, Parameters{11166560, 0}, "", NoDoubt},
	{"yolo_new", 0.75, 228, 300, Steps, 4, 5, 2, YOLO, Parameters{9428179, 0}, "", NoDoubt},
	{"yolox", 0.75, 1500, 2000, Steps, 4, 5, 2.5, Words, Parameters{}, "", NoDoubt},
}

func TestSamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.rec")
	if err != nil || len(files) != len(samples) {
		t.Errorf("%d recordings, %d samples: %v", len(files), len(samples), err)
	}
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			pieces := recording(t, s.name, max(1, slower[s.name]))
			end := time.Duration(float64(pieces[len(pieces)-1].at) * s.at)
			var r Reader
			for _, p := range pieces {
				if p.at <= end {
					r.Feed(start.Add(p.at), Stdout, []byte(p.text))
				}
			}
			s.check(t, &r, end)
		})
	}
}

func (s sample) check(t *testing.T, r *Reader, end time.Duration) {
	p, ok := r.Progress(start.Add(end))
	if !ok {
		t.Fatal("nothing was read")
	}
	// Counts are a line behind, and totals from a printed time are rounded.
	near := func(got, want, within float64) bool { return got >= want*(1-within) && got <= want*(1+within) }
	if !near(p.Done, s.done, 0.07) || !near(p.Total, s.total, 0.03) || p.Unit != s.unit || p.Epoch != s.epoch || p.Epochs != s.epochs {
		t.Errorf("%g of %g %s, epoch %g of %g; want %g of %g %s, epoch %g of %g", p.Done, p.Total, p.Unit, p.Epoch, p.Epochs, s.done, s.total, s.unit, s.epoch, s.epochs)
	}
	if !near(p.Rate, s.rate, 0.1) || p.RateError > 0.2 || p.Source != s.source || p.PerSecond != s.per {
		t.Errorf("%g per second within %g by %s, %s; want %g by %s, %s", p.Rate, p.RateError, p.Source, p.PerSecond, s.rate, s.source, s.per)
	}
	if got, _ := r.Parameters(); got != s.params {
		t.Errorf("parameters %v, want %v", got, s.params)
	}
	if p.Doubt != s.doubt {
		t.Errorf("doubt %q, want %q", p.Doubt, s.doubt)
	}
}
