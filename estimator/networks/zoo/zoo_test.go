package zoo

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"carma/configs/models"
)

type reference struct {
	name         string
	size         int // image or sequence
	rank         int // rank of the adapters
	params, kept int64
}

// references reads testdata/reference.tsv. reference.py made it from the
// libraries' own models.
func references(t *testing.T) []reference {
	t.Helper()
	text, err := os.ReadFile("testdata/reference.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 5 {
			t.Fatalf("line %q has %d fields, want 5", line, len(f))
		}
		var numbers [4]int64
		for i := range numbers {
			n, err := strconv.ParseInt(f[i+1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers[i] = n
		}
		r := reference{f[0], int(numbers[0]), int(numbers[1]), numbers[2], numbers[3]}
		all = append(all, r)
	}
	return all
}

func build(t *testing.T, name string, o models.Overrides) *models.Config {
	t.Helper()
	cfg, err := Build(name, o)
	if err != nil {
		t.Fatal(err)
	}
	if problem := consistent(cfg); problem != "" {
		t.Fatalf("%s: %s", name, problem)
	}
	return cfg
}

// resized sets the image or the sequence, whichever the network has.
func resized(t *testing.T, name string, size int) models.Overrides {
	t.Helper()
	model, _, _ := strings.Cut(name, "/")
	e, err := find(model)
	if err != nil {
		t.Fatal(err)
	}
	if size == 0 {
		return models.Overrides{}
	}
	if e.Size.Image > 0 {
		return models.Overrides{Image: size}
	}
	return models.Overrides{Sequence: size}
}

func TestReferences(t *testing.T) {
	for _, r := range references(t) {
		o := resized(t, r.name, r.size)
		o.LoRA = r.rank
		cfg := build(t, r.name, o)
		if got := params(cfg); got != r.params {
			t.Errorf("%s has %d parameters, want %d (%+d)", r.name, got, r.params, got-r.params)
		}
		if r.kept == 0 {
			continue
		}
		got := keptBytes(cfg)
		off := float64(got-r.kept) / float64(r.kept)
		t.Logf("%-26s keeps %10d, library %10d, %+.4f%%", r.name, got, r.kept, 100*off)
		if off < -0.001 || off > 0.001 {
			t.Errorf("%s keeps %d bytes per sample, want %d (%+.2f%%)", r.name, got, r.kept, 100*off)
		}
	}
}
