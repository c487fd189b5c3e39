package mapper

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pureImports lists what the core may import of the standard library: nothing that reads
// a clock, a file, the network or randomness.
var pureImports = []string{"cmp", "container/heap", "encoding/json", "fmt", "math", "slices", "strconv", "strings", "time"}

// ourImports lists the packages of ours that the core may import. They follow the same
// rules, and each may import those before it.
var ourImports = []string{"carma/internal/units", "carma/mapper/interference", "carma/mapper/model", "carma/mapper/ledger", "carma/mapper/policy", "carma/mapper/fairshare", "carma/mapper/predict", "carma/mapper/breaker", "carma/mapper/queue", "carma/mapper/reserve", "carma/mapper/place", "carma/mapper/preempt", "carma/mapper/learn", "carma/mapper/explain", "carma/mapper/observe", "carma/mapper/lifecycle", "carma/mapper/attempt", "carma/mapper/recovery"}

// coreFolders lists the folders of the core that hold its types, rules and constants.
var coreFolders = []string{"model", "ledger", "policy", "fairshare", "predict", "breaker", "queue", "reserve", "place", "preempt", "learn", "explain", "observe", "lifecycle", "attempt", "recovery", "."}

// coreSources parses the sources of all folders of the core.
func coreSources(t *testing.T) (all []*ast.File) {
	t.Helper()
	for _, dir := range coreFolders {
		files, err := sourcesIn(dir)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d source files found, %v", dir, len(files), err)
		}
		all = append(all, files...)
	}
	return all
}

// impureTime lists the names in package time that read or wait for a clock.
var impureTime = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer", "Ticker", "Timer", "Local", "LoadLocation"}

// mapRanges lists the functions that may range over a map, each with the reason why the
// order has no effect.
var mapRanges = map[string]string{
	"ledger.(*taskIndex).AuditKindLinks": "counts, decides nothing",
	"ledger.(*taskIndex).Clone":          "copies into another map",
	"ledger.(*taskIndex).Tasks":          "sorts afterwards",
	"ledger.(*taskIndex).TaskList":       "sorts afterwards",
	"ledger.(*taskIndex).AnyTask":        "asks whether there is one; the order does not matter",
	"ledger.(*Ledger).Suspended":         "sorts afterwards",
	"queue.(*Queue).auditHeld":           "checks each group by itself, decides nothing",
	"queue.(*Queue).Clone":               "copies into another map",
	"predict.(*Predictor).Clone":         "copies into another map",
	"Forms":                              "copies into another map",
}

// TestPurity checks, by parsing the packages, that the core is a function of its events.
func TestPurity(t *testing.T) {
	var used []string
	check := func(dir string, imports []string) {
		files, err := sourcesIn(dir)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d source files found, %v", dir, len(files), err)
		}
		bad, ranges, blind := impurities(imports, files)
		for _, b := range append(bad, blind...) {
			t.Error(b)
		}
		used = append(used, ranges...)
	}
	for i, path := range ourImports {
		check(filepath.Join("..", strings.TrimPrefix(path, "carma/")), slices.Concat(pureImports, []string{"errors"}, ourImports[:i]))
	}
	check(".", slices.Concat(pureImports, ourImports))
	for name := range mapRanges {
		if !slices.Contains(used, name) {
			t.Errorf("%s is listed in mapRanges and ranges over no map", name)
		}
	}
}

// sourcesIn parses the sources of the package in a folder.
func sourcesIn(dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// TestPurityCanFail shows that each kind of impurity is found.
func TestPurityCanFail(t *testing.T) {
	for _, row := range []struct{ name, body, want string }{
		{"clock", `import "time"; var T = time.Now()`, "time.Now"},
		{"clock under another name", `import clock "time"; var T = clock.Since`, "time.Since"},
		{"timer", `import "time"; var t time.Timer`, "time.Timer"},
		{"chance", `import "math/rand"; var N = rand.Int()`, `import of "math/rand"`},
		{"files", `import "os"; var F = os.Stdin`, `import of "os"`},
		{"locks", `import "sync"; var M sync.Mutex`, `import of "sync"`},
		{"ours", `import "carma/configs"; var _ = configs.Example`, `import of "carma/configs"`},
		{"more of ours", `import "carma/mapper/sim"; var _ sim.Load`, `import of "carma/mapper/sim"`},
		{"others", `import "github.com/rs/zerolog"; var _ zerolog.Logger`, `import of "github.com/rs/zerolog"`},
		{"goroutine", `func f() { go f() }`, "a goroutine"},
		{"channel", `var C chan int`, "a channel"},
		{"select", `func f() { select {} }`, "a select"},
		{"map", `type m map[int]int; func f(x m) (n int) { for k := range x { n = k }; return n }`, "f ranges over a map"},
		{"map of a field", `type s struct { m map[int]int }; func (x *s) f() (n int) { for k := range x.m { n = k }; return n }`, "(*s).f ranges over a map"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, err := parser.ParseFile(fset, "x.go", "package mapper; "+row.body, 0)
			if err != nil {
				t.Fatal(err)
			}
			bad, _, _ := impurities(slices.Concat(pureImports, ourImports), []*ast.File{f})
			if !strings.Contains(strings.Join(bad, "\n"), row.want) {
				t.Fatalf("found %q, want %q in it", bad, row.want)
			}
		})
	}
}

// The sources of imported packages are read once, because that takes a second.
var (
	fset       = token.NewFileSet()
	fromSource = sourceImporter()
)

// sourceImporter reads packages from their sources. A test that was built with -trimpath
// does not know where Go's own are.
func sourceImporter() types.Importer {
	if build.Default.GOROOT == "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			panic(fmt.Sprintf("go env GOROOT: %v", err))
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	return importer.ForCompiler(fset, "source", nil)
}

// importAllowed resolves only the allowed imports of a package under test.
type importAllowed []string

func (paths importAllowed) Import(path string) (*types.Package, error) {
	if !slices.Contains(paths, path) {
		return nil, fmt.Errorf("%s is not to be imported", path)
	}
	return fromSource.Import(path)
}

// impurities returns three lists: forbidden uses in the sources of the core, given the allowed
// imports; the functions of mapRanges that range over a map; and the types that could not be
// resolved, which may hide a forbidden use.
func impurities(imports []string, files []*ast.File) (bad, allowed, blind []string) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importAllowed(imports), Error: func(err error) { blind = append(blind, err.Error()) }}
	_, _ = conf.Check("mapper", fset, files, info) // the first error; blind has all

	for _, f := range files {
		for _, decl := range f.Decls {
			where := "a declaration"
			if fn, ok := decl.(*ast.FuncDecl); ok {
				if where = funcName(fn); f.Name.Name != "mapper" {
					where = f.Name.Name + "." + where
				}
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				what := impurity(imports, info, n)
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
	return bad, allowed, blind
}

const rangesOverMap = "ranges over a map"

// impurity returns a description of the impurity of one node, or returns "".
func impurity(imports []string, info *types.Info, n ast.Node) string {
	switch n := n.(type) {
	case *ast.ImportSpec:
		if path, _ := strconv.Unquote(n.Path.Value); !slices.Contains(imports, path) {
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
