package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMended: each fault in CONTRIBUTING.md has a test, and that test exists: a Go test,
// a script of cmd/carma, or a target of the Makefile.
func TestMended(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	there := goTests(t)
	row := regexp.MustCompile(`(?m)^\| (U\d+) \|.*\| ([^|]+) \|$`)
	faults := row.FindAllStringSubmatch(string(text), -1)
	if len(faults) != 15 {
		t.Errorf("%d faults, want 15", len(faults))
	}
	for _, m := range faults {
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(m[2], -1)
		if len(names) == 0 {
			t.Errorf("%s has no test", m[1])
		}
		for _, n := range names {
			name := n[1]
			switch target, isMake := strings.CutPrefix(name, "make "); {
			case isMake && strings.Contains(string(makefile), "\n"+target+":"):
			case strings.HasSuffix(name, ".txtar") && exists("../cmd/carma/root/testdata/script/"+name):
			case there[name]:
			default:
				t.Errorf("%s: there is no test %s", m[1], name)
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// goTests returns the names of all tests of the project with any build tags.
func goTests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
