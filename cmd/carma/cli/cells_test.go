package cli

import (
	"bytes"
	"testing"
)

// TestCells checks that texts are measured and cut by their width in terminal cells.
func TestCells(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "模型": 4, "학습": 4, "ﾓ": 1, "🚀x": 3, "a\u200bb": 2, "…": 1} {
		if got := Cells(text); got != want {
			t.Errorf("%q takes %d cells, want %d", text, got, want)
		}
	}
	for _, row := range []struct {
		text  string
		width int
		want  string
	}{{"模型训练", 8, "模型训练"}, {"模型训练", 7, "模型训…"}, {"模型训练", 6, "模型…"}, {"模型", 1, "…"}, {"模型", 0, ""}, {"plain", 4, "pla…"}} {
		if got := Shorten(row.text, row.width); got != row.want || Cells(got) > row.width {
			t.Errorf("%q in %d cells: %q, want %q", row.text, row.width, got, row.want)
		}
	}
	table := &Table{Columns: []Column{{Title: "NAME"}, {Title: "USER"}}}
	table.Add("模型", "ann")
	table.Add("abcde", "bob")
	var out bytes.Buffer
	if err := table.Write(&out, 0); err != nil || out.String() != "NAME   USER\n模型   ann\nabcde  bob\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

// TestWidthOf checks that output is cut only on a terminal, or if COLUMNS is set.
func TestWidthOf(t *testing.T) {
	t.Setenv("COLUMNS", "")
	if got := WidthOf(&bytes.Buffer{}); got != 0 {
		t.Errorf("piped: %d", got)
	}
	t.Setenv("COLUMNS", "70")
	if got := WidthOf(&bytes.Buffer{}); got != 70 {
		t.Errorf("COLUMNS: %d", got)
	}
}
