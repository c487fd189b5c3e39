package model

import (
	"go/ast"
	"slices"
	"strconv"
	"testing"
)

// TestPhasesAreListed checks that the list of phases has every constant of the type.
func TestPhasesAreListed(t *testing.T) {
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	var declared, listed []string
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 {
				return true
			}
			of, ok := spec.Type.(*ast.Ident)
			text, literal := spec.Values[0].(*ast.BasicLit)
			if ok && literal && of.Name == "Phase" {
				name, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				declared = append(declared, name)
			}
			return true
		})
	}
	for _, p := range Phases {
		listed = append(listed, string(p))
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) < 10 || !slices.Equal(declared, listed) {
		t.Errorf("the package declares the phases %v, the list has %v", declared, listed)
	}
}
