package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/cli/pkg/kvfile"
	"pgregory.net/rapid"
)

// sameAsDocker compares carma's reading of a file of variables with docker's.
func sameAsDocker(t interface {
	Helper()
	Errorf(string, ...any)
}, path string) {
	t.Helper()
	want, wrong := kvfile.Parse(path, os.LookupEnv)
	got, err := envFile(path)
	text, _ := os.ReadFile(path)
	if (err == nil) != (wrong == nil) || err == nil && !slices.Equal(got, want) {
		t.Errorf("%q: %q, %v; docker: %q, %v", text, got, err, want, wrong)
	}
}

// TestEnvFile: a file of variables is read as docker run reads it.
func TestEnvFile(t *testing.T) {
	t.Setenv("FROM_HERE", "yes")
	for name, text := range map[string]string{
		"plain":            "A=1\nB=two words\n",
		"quotes stay":      "A=\"1\"\nB='x'\n",
		"a mark":           "\ufeffA=1\n",
		"a mark, a space":  "\ufeff  A=1\n",
		"a space, a mark":  " \ufeffA=1\n",
		"a mark later":     "A=1\n\ufeffB=1\n",
		"of windows":       "A=1\r\nB=2\r\n",
		"remarks":          "# A=1\n  # B=2\nC=3 # not a remark\n#\n",
		"export":           "export A=1\n",
		"taken from here":  "FROM_HERE\nNOT_HERE\n",
		"no name":          "=1\n",
		"nothing":          "A=\n",
		"several signs":    "A=b=c==\n",
		"space behind":     "A=1  \nFROM_HERE \n",
		"indented by page": "\f\vA=1\n",
		"no line end":      "A=1",
		"not text":         "A=\xff\n",
		"empty":            "",
	} {
		path := filepath.Join(t.TempDir(), "f.env")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { sameAsDocker(t, path) })
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"A", "FROM_HERE", "=", "#", " ", "\t", "\r", "\n", "\ufeff", "'", "\"", "\u00a0", "\xff", "export "})).Draw(t, "pieces")
		path := filepath.Join(dir, "f.env")
		if err := os.WriteFile(path, []byte(strings.Join(pieces, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		sameAsDocker(t, path)
	})
}
