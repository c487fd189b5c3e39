package test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var writeLimits = flag.Bool("write-limits", false, "write test/limits.yaml")

const limitsFile = "limits.yaml"

// The sizes that new code keeps to. A type or a package above them is listed in
// limits.yaml with its present size, which may only fall.
const (
	maxMethods = 40
	maxFiles   = 25
)

// sizes are numbers of methods by type, and of Go files without tests by package.
type sizes struct {
	Methods map[string]int
	Files   map[string]int
}

// sizesIn counts the methods and files below a folder. Types and packages are named by
// their folder.
func sizesIn(root string) (sizes, error) {
	s := sizes{Methods: map[string]int{}, Files: map[string]int{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		s.Files[filepath.ToSlash(rel)]++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				s.Methods[filepath.ToSlash(rel)+"."+receiver(fn)]++
			}
		}
		return nil
	})
	return s, err
}

// receiver returns the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// TestLimits fails if a type has more than 40 methods or a package more than 25 files and
// is not listed in limits.yaml with that number. After a change that makes one smaller,
// run it with -write-limits.
func TestLimits(t *testing.T) {
	all, err := sizesIn("..")
	if err != nil {
		t.Fatal(err)
	}
	found := sizes{Methods: above(all.Methods, maxMethods), Files: above(all.Files, maxFiles)}
	b, err := os.ReadFile(limitsFile)
	if err != nil && !*writeLimits {
		t.Fatal(err)
	}
	var listed sizes
	if err := yaml.Unmarshal(b, &listed); err != nil {
		t.Fatal(err)
	}
	if *writeLimits {
		for _, grown := range append(compareSizes("methods", found.Methods, listed.Methods), compareSizes("files", found.Files, listed.Files)...) {
			t.Log(grown)
		}
		b, err := yaml.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		head := "# Types with more than 40 methods and packages with more than 25 Go files, see TestLimits. The numbers may only fall.\n"
		if err := os.WriteFile(limitsFile, append([]byte(head), b...), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, s := range append(compareSizes("methods", found.Methods, listed.Methods), compareSizes("files", found.Files, listed.Files)...) {
		t.Error(s)
	}
}

func above(counts map[string]int, limit int) map[string]int {
	large := map[string]int{}
	for name, n := range counts {
		if n > limit {
			large[name] = n
		}
	}
	return large
}

// compareSizes lists what differs from the listed numbers.
func compareSizes(unit string, found, listed map[string]int) (differ []string) {
	for name, n := range found {
		switch was, ok := listed[name]; {
		case !ok:
			differ = append(differ, fmt.Sprintf("%s has %d %s, more than a type or package may have: divide it", name, n, unit))
		case n > was:
			differ = append(differ, fmt.Sprintf("%s has grown from %d to %d %s: divide it, or put what is new elsewhere", name, was, n, unit))
		case n < was:
			differ = append(differ, fmt.Sprintf("%s has %d %s, limits.yaml says %d: run go test ./test -run TestLimits -write-limits", name, n, unit, was))
		}
	}
	for name, was := range listed {
		if _, ok := found[name]; !ok {
			differ = append(differ, fmt.Sprintf("%s is listed with %d %s and has fewer than the limit: run go test ./test -run TestLimits -write-limits", name, was, unit))
		}
	}
	return differ
}

// TestLimitsCanFail checks that a type that has grown, a new large one and a smaller one
// are each reported.
func TestLimitsCanFail(t *testing.T) {
	dir := t.TempDir()
	var src strings.Builder
	src.WriteString("package p\n\ntype T[K any] struct{}\n\n")
	for i := range maxMethods + 1 {
		src.WriteString(fmt.Sprintf("func (*T[K]) M%d() {}\n", i))
	}
	if err := os.MkdirAll(filepath.Join(dir, "p"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p", "p.go"), []byte(src.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := sizesIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := above(all.Methods, maxMethods)
	for _, row := range []struct {
		listed map[string]int
		want   string
	}{
		{nil, "more than a type or package may have"},
		{map[string]int{"p.T": maxMethods}, "has grown from 40 to 41"},
		{map[string]int{"p.T": maxMethods + 2}, "limits.yaml says 42"},
		{map[string]int{"p.T": maxMethods + 1, "p.U": 50}, "p.U is listed"},
	} {
		if got := compareSizes("methods", found, row.listed); len(got) != 1 || !strings.Contains(got[0], row.want) {
			t.Errorf("listed %v: got %q, want %q", row.listed, got, row.want)
		}
	}
	if got := compareSizes("methods", found, map[string]int{"p.T": maxMethods + 1}); len(got) != 0 {
		t.Errorf("equal numbers are reported: %q", got)
	}
}
