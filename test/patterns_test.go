package test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPatternsAreLazy: no package of the program compiles regular expressions when it is
// imported. All commands have all packages; together the expressions were a third of the
// agent's heap.
func TestPatternsAreLazy(t *testing.T) {
	out, err := exec.Command("go", "list", "-C", clusterModule, "-deps", "-json=ImportPath,Dir,GoFiles", "./cmd/carma-kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(p.ImportPath, "carma/") {
			continue
		}
		for _, name := range p.GoFiles {
			seen++
			compilesEarly(t, filepath.Join(p.Dir, name))
		}
	}
	if seen < 100 {
		t.Errorf("only %d files were read", seen)
	}
}

// compilesEarly finds regexp.MustCompile in a file's variables and init functions.
func compilesEarly(t *testing.T, path string) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	look := func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "MustCompile") {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "regexp" {
				t.Errorf("%s: regexp.%s at every start of carma; take lazyregexp.New (carma/internal/lazyregexp)", files.Position(s.Pos()), s.Sel.Name)
			}
		}
		_, later := n.(*ast.FuncLit) // the body of a function variable runs when it is called
		return !later
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			ast.Inspect(d, look)
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				ast.Inspect(d.Body, look)
			}
		}
	}
}
