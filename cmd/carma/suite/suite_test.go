package suite

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

// options of the golden files: user 1000, who has set two variables.
func options(t testing.TB) Options {
	folder, err := filepath.Abs("testdata/compose")
	if err != nil {
		t.Fatal(err)
	}
	return Options{Folder: folder, Name: "", Environ: []string{"EPOCHS=5", "DEBUG=1"}, UID: 1000, GID: 1000}
}

// TestComposeFiles: each file under testdata/compose becomes the tasks that its
// golden file has, or is refused with its words.
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

// describe is a suite as a golden file has it: a line for each service, with
// what it does not leave to defaults.
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
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
