package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/mapper/sim/study"
)

// TestTables: the rows' policies and truths exist, measures of aims are columns,
// and each part has a place in the documents.
func TestTables(t *testing.T) {
	var names []string
	for _, c := range columns {
		names = append(names, c.title)
		if !slices.Contains(study.MetricNames(), c.metric) {
			t.Errorf("column %s: no metric %s", c.title, c.metric)
		}
	}
	for _, c := range urgentColumns {
		if !slices.Contains(study.MetricNames(), c.metric) {
			t.Errorf("column %s: no metric %s", c.title, c.metric)
		}
	}
	for _, a := range aimed {
		if !slices.Contains(names, a.metric) {
			t.Errorf("aim %q: no column %s", a.what, a.metric)
		}
	}
	parts := []string{"aims", "study"}
	for _, one := range tables {
		parts = append(parts, one.name)
		for _, r := range one.rows {
			if _, err := (study.Rules{Policies: r.policy, Estimator: study.Estimators[0]}).Rows(); err != nil {
				t.Errorf("%s: %v", one.name, err)
			}
			fields := strings.Fields(r.flags)
			if i := slices.Index(fields, "--truth"); i >= 0 {
				if _, err := study.ParseTruth(strings.Replace(fields[i+1], "pairs=", "pairs=../../../", 1)); err != nil {
					t.Errorf("%s: %v", one.name, err)
				}
			}
		}
	}
	text := ""
	for _, doc := range []string{"../../../docs/results.md", "../studies.md"} {
		content, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		text += string(content)
	}
	for _, p := range parts {
		if n := strings.Count(text, "<!-- table "+p+": written by make replay-tables -->\n"); n != 1 {
			t.Errorf("table %s has %d places in the documents", p, n)
		}
	}
	if n := strings.Count(text, "written by make replay-tables -->"); n != len(parts) {
		t.Errorf("%d places for %d tables", n, len(parts))
	}
}

func TestInsert(t *testing.T) {
	folder := t.TempDir()
	one, two := filepath.Join(folder, "one.md"), filepath.Join(folder, "two.md")
	const place = "before\n<!-- table a: written by make replay-tables -->\nold\n<!-- end of table -->\nafter\n"
	for path, text := range map[string]string{one: "nothing\n", two: place} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := insert([]string{one, two}, "a", "new\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(two); err != nil || string(got) != strings.Replace(place, "old", "new", 1) {
		t.Errorf("%q %v", got, err)
	}
	if err := insert([]string{one, two}, "b", "new\n"); err == nil || !strings.Contains(err.Error(), "table b:") {
		t.Error(err)
	}
}
