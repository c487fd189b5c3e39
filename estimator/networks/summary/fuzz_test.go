package summary

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/configs/models"
)

// imports checks that a reader of foreign text fails with one line, or returns a
// configuration that is valid and can be written.
func imports(f *testing.F, pattern string, read func(text []byte) (*models.Config, error)) {
	files, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(files) == 0 {
		f.Fatal(err, "no seeds")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) < 16<<10 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := read(text)
		c, err = finish(c, err, "x", models.Overrides{})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("more than a line: %q", err)
			}
			return
		}
		var b bytes.Buffer
		if err := c.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := models.Read("x", &b); err != nil {
			t.Fatal(err)
		}
	})
}

func lines(text []byte) []string { return strings.Split(string(text), "\n") }

func FuzzImportTorchsummary(f *testing.F) {
	imports(f, "*.torchsummary.txt", func(text []byte) (*models.Config, error) { return readTorchsummary(lines(text), 0) })
}

func FuzzImportTorchinfo(f *testing.F) {
	imports(f, "*.torchinfo*.txt", func(text []byte) (*models.Config, error) {
		return readTorchinfo(lines(text), min(1, len(lines(text))-1))
	})
}

func FuzzImportTree(f *testing.F) {
	imports(f, "*.tree.txt", func(text []byte) (*models.Config, error) {
		return readTree(lines(text), 0, models.Overrides{Sequence: 8})
	})
}
