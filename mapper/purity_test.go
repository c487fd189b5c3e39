package mapper

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pureImports are what the core may import: the standard library, and of it
// nothing that reads a clock, a file, the network or chance.
var pureImports = []string{"cmp", "container/heap", "encoding/json", "fmt", "math", "slices", "strconv", "strings", "time"}

// impureTime are the names in package time that ask or wait for a clock.
var impureTime = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer", "Ticker", "Timer", "Local", "LoadLocation"}

// mapRanges are the functions that may range over a map, each with the reason
// why the order does not show.
var mapRanges = map[string]string{
	"(*State).Audit":       "checks each task by itself, decides nothing",
	"(*State).Clone":       "copies into another map",
	"(*State).MarshalJSON": "sorts afterwards",
	"(*State).Tasks":       "sorts afterwards",
}

// TestPurity parses the package: the core is a function of its events.
func TestPurity(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sources[name] = string(b)
		}
	}
	if len(sources) < 10 {
		t.Fatalf("only %d source files found", len(sources))
	}
	bad, used := impurities(t, sources)
	for _, b := range bad {
		t.Error(b)
	}
	for name := range mapRanges {
		if !slices.Contains(used, name) {
			t.Errorf("%s is listed in mapRanges and ranges over no map", name)
		}
	}
}

// TestPurityCanFail shows that each kind of impurity is seen.
func TestPurityCanFail(t *testing.T) {
	for _, row := range []struct{ name, body, want string }{
		{"clock", `import "time"; var T = time.Now()`, "time.Now"},
		{"clock under another name", `import clock "time"; var T = clock.Since`, "time.Since"},
		{"timer", `import "time"; var t time.Timer`, "time.Timer"},
		{"chance", `import "math/rand"; var N = rand.Int()`, `import of "math/rand"`},
		{"files", `import "os"; var F = os.Stdin`, `import of "os"`},
		{"locks", `import "sync"; var M sync.Mutex`, `import of "sync"`},
		{"ours", `import "carma/configs"; var _ = configs.Load`, `import of "carma/configs"`},
		{"others", `import "github.com/rs/zerolog"; var _ zerolog.Logger`, `import of "github.com/rs/zerolog"`},
		{"goroutine", `func f() { go f() }`, "a goroutine"},
		{"channel", `var C chan int`, "a channel"},
		{"select", `func f() { select {} }`, "a select"},
		{"map", `type m map[int]int; func f(x m) (n int) { for k := range x { n = k }; return n }`, "f ranges over a map"},
		{"map of a field", `type s struct { m map[int]int }; func (x *s) f() (n int) { for k := range x.m { n = k }; return n }`, "(*s).f ranges over a map"},
	} {
		t.Run(row.name, func(t *testing.T) {
			bad, _ := impurities(t, map[string]string{"x.go": "package mapper; " + row.body})
			if !strings.Contains(strings.Join(bad, "\n"), row.want) {
				t.Fatalf("found %q, want %q in it", bad, row.want)
			}
		})
	}
}

// The standard library is read from its sources once; that takes a second.
var (
	fset   = token.NewFileSet()
	stdlib = importer.ForCompiler(fset, "source", nil)
)

type importAllowed struct{}

func (importAllowed) Import(path string) (*types.Package, error) {
	if !slices.Contains(pureImports, path) {
		return nil, fmt.Errorf("%s is not to be imported", path)
	}
	return stdlib.Import(path)
}

// impurities lists what must not be in the sources of the core, and the
// functions of mapRanges that do range over a map.
func impurities(t *testing.T, sources map[string]string) (bad, allowed []string) {
	t.Helper()
	var files []*ast.File
	for name, src := range sources {
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importAllowed{}, Error: func(error) {}}
	_, _ = conf.Check("mapper", fset, files, info) // what is amiss with a type, the compiler has said

	for _, f := range files {
		for _, decl := range f.Decls {
			where := "a declaration"
			if fn, ok := decl.(*ast.FuncDecl); ok {
				where = funcName(fn)
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				what := impurity(info, n)
				switch {
				case what == "":
				case what == rangesOverMap && mapRanges[where] != "":
					allowed = append(allowed, where)
				default:
					bad = append(bad, fmt.Sprintf("%s: %s %s", fset.Position(n.Pos()), where, what))
				}
				return true
			})
		}
	}
	return bad, allowed
}

const rangesOverMap = "ranges over a map"

// impurity says what is impure in one node itself, or "".
func impurity(info *types.Info, n ast.Node) string {
	switch n := n.(type) {
	case *ast.ImportSpec:
		if path, _ := strconv.Unquote(n.Path.Value); !slices.Contains(pureImports, path) {
			return fmt.Sprintf("has an import of %q", path)
		}
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.SelectStmt:
		return "has a select"
	case *ast.ChanType:
		return "has a channel"
	case *ast.SelectorExpr:
		if obj := info.Uses[n.Sel]; obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "time" &&
			obj.Parent() == obj.Pkg().Scope() && slices.Contains(impureTime, obj.Name()) {
			return "uses time." + obj.Name()
		}
	case *ast.RangeStmt:
		if t := info.TypeOf(n.X); t != nil {
			if _, ok := t.Underlying().(*types.Map); ok {
				return rangesOverMap
			}
		}
	}
	return ""
}

func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return "(" + types.ExprString(fn.Recv.List[0].Type) + ")." + fn.Name.Name
}
