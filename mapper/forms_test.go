package mapper

import (
	"go/ast"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"carma/mapper/model"
)

// TestWords checks that Words contains every constant of its types.
func TestWords(t *testing.T) {
	declared := map[string][]string{}
	for _, f := range coreSources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			of, ok1 := spec.Type.(*ast.Ident)
			value, ok2 := spec.Values[0].(*ast.BasicLit)
			if !ok1 || !ok2 {
				return true
			}
			if word, err := strconv.Unquote(value.Value); err == nil && word != "" {
				declared[of.Name] = append(declared[of.Name], word)
			}
			return true
		})
	}
	for _, list := range Words() {
		v := reflect.ValueOf(list)
		name := v.Type().Elem().Name()
		var listed []string
		for i := range v.Len() {
			listed = append(listed, v.Index(i).String())
		}
		slices.Sort(listed)
		slices.Sort(declared[name])
		if !slices.Equal(listed, declared[name]) || len(listed) == 0 {
			t.Errorf("the core has the %s %q, Words has %q", name, declared[name], listed)
		}
	}
}

// TestFormsOfState checks that a snapshot has the form that Forms names.
func TestFormsOfState(t *testing.T) {
	forms := Forms()
	if want := len(model.EventDecoders) + len(model.DecisionDecoders) + 1; len(forms) != want {
		t.Errorf("%d forms, want %d", len(forms), want)
	}
	for name, form := range forms {
		if form == nil {
			t.Errorf("%s has no form", name)
		}
	}
}
