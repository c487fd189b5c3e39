package failpoint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Point is a call of [Hit] or [Error] in the source.
type Point struct {
	Name string
	At   string // file:line
}

// Points lists the points in the Go source below root, by name. A name that is not a
// constant, or that occurs twice, is an error.
func Points(root string) ([]Point, error) {
	var list []Point
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && marks(call.Fun) && err == nil {
				var p Point
				if p, err = point(files, call); err == nil {
					list = append(list, p)
				}
			}
			return err == nil
		})
		return err
	})
	slices.SortFunc(list, func(a, b Point) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list) && err == nil; i++ {
		if list[i].Name == list[i-1].Name {
			err = fmt.Errorf("failpoint %s stands at %s and at %s", list[i].Name, list[i-1].At, list[i].At)
		}
	}
	return list, err
}

// marks reports whether a called function is Hit or Error.
func marks(f ast.Expr) bool {
	sel, ok := f.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "failpoint" && (sel.Sel.Name == "Hit" || sel.Sel.Name == "Error")
}

func point(files *token.FileSet, call *ast.CallExpr) (Point, error) {
	at := files.Position(call.Pos())
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return Point{}, fmt.Errorf("%s: the name of a failpoint is not a constant", at)
	}
	name, err := strconv.Unquote(lit.Value)
	return Point{Name: name, At: fmt.Sprintf("%s:%d", at.Filename, at.Line)}, err
}
