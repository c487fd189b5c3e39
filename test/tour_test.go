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

// TestTour: everything that docs/tour.md names exists: folders, files, and each
// function, in the file named before it or in its folder.
func TestTour(t *testing.T) {
	text, err := os.ReadFile("../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted, place, functions := regexp.MustCompile("`([^`]+)`"), "", 0
	for n, line := range strings.Split(string(text), "\n") {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			name := m[1]
			switch {
			case strings.Contains(name, " "): // it is a command
			case strings.Contains(name, "/"):
				if _, err := os.Stat(filepath.Join("..", name)); err != nil {
					t.Errorf("docs/tour.md:%d: %v", n+1, err)
				}
				place = name
			default:
				functions++
				if !declares(t, place, name) {
					t.Errorf("docs/tour.md:%d: %s has no function %s", n+1, place, name)
				}
			}
		}
	}
	if functions < 20 {
		t.Errorf("only %d functions are named", functions)
	}
}

// declares reports whether a Go file declares a function, a method, or a method
// of an interface with this name.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, 0)
	if err != nil {
		t.Error(err)
		return false
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			found = found || n.Name.Name == name
			return false
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				found = found || len(m.Names) > 0 && m.Names[0].Name == name
			}
		}
		return true
	})
	return found
}
