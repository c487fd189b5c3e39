package failpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPoints: every point has a name of its own.
func TestPoints(t *testing.T) {
	list, err := Points("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 20 {
		t.Errorf("only %d points are found", len(list))
	}
	for _, p := range list {
		if strings.ToLower(p.Name) != p.Name || strings.ContainsAny(p.Name, ": _") {
			t.Errorf("%s: name %q; write it like worker-created", p.At, p.Name)
		}
	}
}

func TestPointsAreToldApart(t *testing.T) {
	for src, want := range map[string]string{
		`failpoint.Hit("a"); _ = failpoint.Error("b")`: "",
		`failpoint.Hit("a"); _ = failpoint.Error("a")`: "stands at",
		`name := "a"; failpoint.Hit(name)`:             "not a constant",
	} {
		dir := t.TempDir()
		text := "package x\nimport \"carma/internal/failpoint\"\nfunc f() {" + src + "}\n"
		if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := Points(dir)
		if want == "" && (err != nil || len(list) != 2) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v, want %q", src, list, err, want)
		}
	}
}
