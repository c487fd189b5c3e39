package networks

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/configs/models"
)

const tiny = `{
  "schema": 1,
  "name": "tiny",
  "family": "mlp",
  "train": {"batch": 8},
  "inputs": [{"shape": [4]}],
  "layers": [
    {"type": "linear", "out": [2], "params": [8, 2]}
  ]
}
`

// TestRead: the format is recognized by the content.
func TestRead(t *testing.T) {
	c, err := Read("x.json", strings.NewReader(tiny), models.Overrides{Batch: 3})
	if err != nil || c.Train.Batch != 3 || c.Name != "tiny" {
		t.Errorf("%+v, %v", c, err)
	}
	pipe := io.MultiReader(strings.NewReader(tiny)) // a reader that cannot seek
	if c, err := Read("stdin", pipe, models.Overrides{}); err != nil || c.Name != "tiny" {
		t.Errorf("from a pipe: %+v, %v", c, err)
	}
}

// TestReadFaults: an error is one line with the file's name and, if known, the
// line's number.
func TestReadFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "x: empty; ",
		"hello\nworld\n":                      "x: neither a model configuration nor a config.json of transformers; estimate the program itself (carma estimate --probe ",
		"\x08\x08\x12\x07pytorch":             "x: a binary file (ONNX files are not read), not JSON; estimate the program itself ",
		"{":                                   "x:1: the text ends too early; ",
		strings.Repeat(" ", models.MaxFile+1): "x: larger than 64 MiB; ",
	} {
		_, err := Read("x", strings.NewReader(text), models.Overrides{})
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := Read("x", strings.NewReader(tiny), models.Overrides{Sequence: 3})
	if err == nil || err.Error() != "x: seq: the layers of tiny are fixed; leave it out" {
		t.Error(err)
	}
}

// TestFind: a file counts before a model of the catalogue.
func TestFind(t *testing.T) {
	if c, err := Find("resnet50", models.Overrides{}); err != nil || c.Name != "resnet50" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Find("resnet500", models.Overrides{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile(filepath.Join(".", "resnet50"), []byte(tiny), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Find("resnet50", models.Overrides{}); err != nil || c.Name != "tiny" {
		t.Errorf("%+v, %v", c, err)
	}
}
