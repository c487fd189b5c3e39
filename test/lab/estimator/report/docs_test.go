package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestTablesInDocs: both documents have a place for the tables, and their tables agree
// with the cards. It fails if a training wrote new cards and nobody made the report.
func TestTablesInDocs(t *testing.T) {
	const root = "../../../../"
	card, err := readHeld(root + "test/lab/estimator/residual/card.json")
	if err != nil {
		t.Fatal(err)
	}
	fewCard, err := readFew(root + "estimator/figures/card.json")
	if err != nil {
		t.Fatal(err)
	}
	for path, tables := range map[string][]func(*bytes.Buffer){
		"docs/estimators.md":    {func(b *bytes.Buffer) { heldOutShort(b, card) }, func(b *bytes.Buffer) { fewShort(b, fewCard) }},
		"test/lab/estimates.md": {func(b *bytes.Buffer) { heldOut(b, card) }, func(b *bytes.Buffer) { few(b, fewCard) }},
	} {
		text, err := os.ReadFile(root + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range []string{begin, end} {
			if n := strings.Count(string(text), mark); n != 1 {
				t.Errorf("%s has %d times %q", path, n, mark)
			}
		}
		for _, table := range tables {
			var want bytes.Buffer
			table(&want)
			if !bytes.Contains(text, want.Bytes()) {
				t.Errorf("%s is not as the cards have it; make estimator-report writes it:\n%s", path, want.String())
			}
		}
	}
}
