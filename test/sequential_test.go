package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSequential: the packages that the Makefile tests without the race detector, and their
// tests, start no goroutine.
func TestSequential(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^SEQUENTIAL := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no list SEQUENTIAL")
	}
	packages := strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " "))
	if len(packages) < 5 {
		t.Fatalf("only %q", packages)
	}
	for _, folder := range packages {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		fset := token.NewFileSet()
		for _, path := range files {
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine; take %s out of SEQUENTIAL in the Makefile", fset.Position(n.Pos()), folder)
				case *ast.CallExpr:
					if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "RunParallel" || f.Sel.Name == "Parallel" && len(n.Args) == 0) {
						t.Errorf("%s runs in parallel; take %s out of SEQUENTIAL in the Makefile", fset.Position(n.Pos()), folder)
					}
				}
				return true
			})
		}
	}
}
