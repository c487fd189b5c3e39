package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports lists what the model may import: the core, and of the standard library nothing
// that reads a clock, a file, the network or randomness.
var imports = []string{"carma/mapper", "carma/mapper/model", "carma/mapper/energy", "carma/mapper/interference", "carma/internal/units", "carma/mapper/words", "cmp", "container/heap", "fmt", "hash/fnv", "math", "slices", "strings", "time"}

// clocks lists the names in package time that read or wait for a clock.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer", "Local", "LoadLocation"}

// TestPurity checks that a replay is a function of its input.
func TestPurity(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fset, parsed := token.NewFileSet(), 0
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed++
		file, err := parser.ParseFile(fset, entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				if path, _ := strconv.Unquote(n.Path.Value); !slices.Contains(imports, path) {
					t.Errorf("%s: import of %s", fset.Position(n.Pos()), path)
				}
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType:
				t.Errorf("%s: concurrency", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
					t.Errorf("%s: time.%s", fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
	if parsed < 5 {
		t.Fatalf("only %d source files found", parsed)
	}
}
