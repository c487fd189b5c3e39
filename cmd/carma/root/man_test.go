package root

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
)

// TestMan: each command has a page with its flags, the configuration has one with its keys, and
// man, if it is installed, reports no errors in them.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	if code := Execute(cli.New(nil, io.Discard, os.Stderr, "1.2.3"), []string{"man", dir}, nil); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man1", "*.1"))
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	run := read("man1/carma-run.1")
	for _, want := range []string{`.TH "CARMA\-RUN" 1 "" "carma 1.2.3"`, `carma\-run \- `, `\-\-batch\-size`, ".SH EXAMPLES", `carma(1), carma.yaml(5)`} {
		if !strings.Contains(run, want) {
			t.Errorf("carma-run.1 lacks %q", want)
		}
	}
	if !strings.Contains(read("man1/carma.1"), `.BR carma\-run (1)`) || !strings.Contains(read("man1/carma-suite.1"), `carma\-suite\-up`) {
		t.Error("the commands below are missing")
	}
	keys := read("man5/carma.yaml.5")
	for _, key := range settings.Keys() {
		if !strings.Contains(keys, "\n.B "+roff(key+":")) {
			t.Errorf("carma.yaml.5 lacks %s", key)
		}
	}
	if _, err := exec.LookPath("man"); err != nil {
		t.Log("man is not installed: the pages were not formatted")
		return
	}
	for _, page := range append(pages, filepath.Join(dir, "man5/carma.yaml.5")) {
		cmd := exec.CommandContext(t.Context(), "man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80", "MANROFFSEQ=")
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil || errs.Len() > 0 {
			t.Errorf("%s: %v: %s", filepath.Base(page), err, errs.String())
		}
	}
}

// TestRoff checks that text that looks like roff commands is escaped.
func TestRoff(t *testing.T) {
	if got, want := roff(".end \\ 'a-b' ~"), `\&.end \e \(aqa\-b\(aq \(ti`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
