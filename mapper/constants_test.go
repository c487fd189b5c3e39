package mapper

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
)

// constantsPage explains the constants.
const constantsPage = "constants.md"

// TestConstantsAreExplained: constants.md has a row for each named number of the core, with its
// value, so that policy carma can be implemented from that page.
func TestConstantsAreExplained(t *testing.T) {
	text, err := os.ReadFile(constantsPage)
	if err != nil {
		t.Fatal(err)
	}
	here := map[string]string{}
	for _, dir := range coreFolders {
		files, err := sourcesIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := numbersOf(files)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(here, numbers)
	}
	if len(here) < 30 {
		t.Fatalf("only %d constants found", len(here))
	}
	for _, what := range unexplained(here, string(text)) {
		t.Error(what)
	}
}

// TestConstantsCanFail shows that a missing row, an old value and a row without constant are
// found.
func TestConstantsCanFail(t *testing.T) {
	here := map[string]string{"a": "0.5", "b": "10m", "c": "1"}
	got := unexplained(here, "| `a` | 0.5 | why |\n| `b` | 9m | why |\n| `d` | 4 | why |\n")
	want := []string{"`b` is 10m and the page says 9m", "`c` (1) has no row", "`d` is on the page and is no constant"}
	if len(got) != len(want) {
		t.Fatalf("found %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("found %q, want %q", got[i], want[i])
		}
	}
}

// unexplained returns the differences between constants, by name, with the rows of a page.
func unexplained(here map[string]string, page string) (all []string) {
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\|").FindAllStringSubmatch(page, -1) {
		rows[m[1]] = strings.TrimSpace(m[2])
	}
	for name, value := range here {
		switch row, ok := rows[name]; {
		case !ok:
			all = append(all, fmt.Sprintf("%s: `%s` (%s) has no row; say what it does, why this value and where it is from", constantsPage, name, value))
		case row != value:
			all = append(all, fmt.Sprintf("%s: `%s` is %s and the page says %s", constantsPage, name, value, row))
		}
	}
	for name := range rows {
		if here[name] == "" {
			all = append(all, fmt.Sprintf("%s: `%s` is on the page and is no constant", constantsPage, name))
		}
	}
	slices.Sort(all)
	return all
}

// numbersOf returns the named numbers of a package, formatted as in constants.md. It leaves out
// the values of enumerations (iota).
func numbersOf(files []*ast.File) (map[string]string, error) {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: fromSource}
	if _, err := conf.Check("mapper", fset, files, info); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, f := range files {
		for _, decl := range f.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST || enumerates(d) {
				continue
			}
			for _, spec := range d.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if c, ok := info.Defs[name].(*types.Const); ok && c.Val().Kind() != constant.String {
						all[name.Name] = valueText(c)
					}
				}
			}
		}
	}
	return all, nil
}

func enumerates(d *ast.GenDecl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "iota"
		return !found
	})
	return found
}

// durationTail matches the zero units at the end of a duration's text.
var durationTail = regexp.MustCompile(`([hm])(0m)?0s$`)

// valueText formats a constant's value as in constants.md: "10m", "256 MiB", "0.05".
func valueText(c *types.Const) string {
	n, exact := constant.Int64Val(constant.ToInt(c.Val()))
	switch c.Type().String() {
	case "time.Duration":
		return durationTail.ReplaceAllString(time.Duration(n).String(), "$1")
	case "carma/internal/units.Bytes":
		return units.Bytes(n).String()
	}
	if exact {
		return fmt.Sprint(n)
	}
	v, _ := constant.Float64Val(c.Val())
	return fmt.Sprint(v)
}
