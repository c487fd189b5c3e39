package compose

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// options returns the options of the golden files: user 1000, with two variables.
func options(t testing.TB) Options {
	folder, err := filepath.Abs("testdata/compose")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Folder: folder, Name: "", Environ: []string{"EPOCHS=5", "DEBUG=1"}, UID: 1000, GID: 1000}
}

// TestComposeFiles checks that each file in testdata/compose becomes the tasks in its golden
// file, or is refused with the error there.
func TestComposeFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/compose/*.yaml")
	if len(files) < 30 {
		t.Fatalf("%d files", len(files))
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			o := options(t)
			s, err := Load(t.Context(), filepath.Base(path), content, o)
			if wrong := (*Error)(nil); err != nil && (!errors.As(err, &wrong) || wrong.Line == 0) {
				t.Errorf("an error without a line: %v", err)
			}
			if refused := strings.HasPrefix(name, "refused-"); refused != (err != nil) {
				t.Errorf("error %v", err)
			}
			golden := filepath.Join("testdata/golden", name+".txt")
			got := strings.ReplaceAll(describe(t, s, err), o.Folder, "$DIR")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func line(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// describe prints a suite for a golden file: a line for each service, with the
// values that differ from the defaults.
func describe(t *testing.T, s *Suite, err error) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "suite %s\n", s.Name)
	for _, v := range s.Services {
		given, err := json.Marshal(v.Submit)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d: %s x%d %s", v.Line, v.Name, v.Replicas, given)
		if v.AllGPUs {
			b.WriteString(" all GPUs")
		}
		if len(v.Array.Indices) > 0 || len(v.Sweep) > 0 {
			fmt.Fprintf(&b, " array %v sweep %v", v.Array, v.Sweep)
		}
		if v.Build != nil {
			given, err := json.Marshal(v.Build)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, " build %s", given)
		}
		if len(v.Create) > 0 {
			fmt.Fprintf(&b, " create %v", v.Create)
		}
		b.WriteByte('\n')
	}
	for _, h := range s.Helpers {
		fmt.Fprintf(&b, "%d: helper %s create %v build %v\n", h.Line, h.Name, h.Create, h.Build != nil)
	}
	if around := s.Around(); around != nil {
		for i := range around.Helpers {
			fmt.Fprintf(&b, "%s\n", line(t, around.Helpers[i]))
		}
		around.Helpers = nil
		fmt.Fprintf(&b, "around: %s\n", line(t, around))
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
