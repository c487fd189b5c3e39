package test

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// TestDuties: each duty of the host in mapper/doc.go names the code for it, and
// that code exists.
func TestDuties(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../mapper/doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	number, place := regexp.MustCompile(`(?m)^ *\d+\. `), regexp.MustCompile(`(\S+\.go) \(([^)]+)\)`)
	duties := number.Split(f.Doc.Text(), -1)[1:]
	if len(duties) < 10 {
		t.Fatalf("only %d duties found", len(duties))
	}
	for i, duty := range duties {
		_, keepers, ok := strings.Cut(strings.Join(strings.Fields(duty), " "), "Kept by ")
		named := place.FindAllStringSubmatch(keepers, -1)
		if !ok || len(named) == 0 {
			t.Errorf("duty %d names no code that keeps it", i+1)
		}
		for _, m := range named {
			for name := range strings.SplitSeq(m[2], ", ") {
				if !declares(t, m[1], name) {
					t.Errorf("duty %d: %s has no function %s", i+1, m[1], name)
				}
			}
		}
	}
}
