package mapper

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// speakers lists the functions that may return an error with a text, each with the reason why
// no decision or record depends on it.
var speakers = map[string]string{
	"CheckSums":      "a broken invariant is a bug of ours",
	"DecodeEvent":    "what cannot be decoded ends the start",
	"DecodeDecision": "as above",
	"UnmarshalJSON":  "as above",
	"Forms":          "names of kinds of rows, as the journal has them",
	"Restore":        "as above",
	"restore":        "as above: a snapshot that contradicts itself",
	"Validate":       "an option that makes no sense",
	"validWeights":   "as above",
	"validQuotas":    "as above",
	"Named":          "as above",
}

// TestCoreHasNoWords checks that the core uses codes and figures in its decisions and records,
// and no sentences. It may neither concatenate texts nor contain texts in literals, except
// errors for callers, panics and the descriptions of the policies.
func TestCoreHasNoWords(t *testing.T) {
	used := map[string]bool{}
	for _, f := range coreSources(t) {
		for _, s := range sentencesIn(f, used) {
			t.Error(s)
		}
	}
	for name := range speakers {
		if !used[name] {
			t.Errorf("%s is listed in speakers and makes no error", name)
		}
	}
}

// TestCoreHasNoWordsCanFail checks that each kind of sentence is found.
func TestCoreHasNoWordsCanFail(t *testing.T) {
	for _, row := range []struct{ body, want string }{
		{`func f() string { return fmt.Sprintf("%d", 1) }`, "fmt.Sprintf"},
		{`func f() string { return fmt.Sprint(1) }`, "fmt.Sprint"},
		{`func f() error { return fmt.Errorf("x") }`, "fmt.Errorf"},
		{`func f() string { return "it waits" }`, `"it waits"`},
		{`var Why = "it waits"`, `"it waits"`},
		{`func (s *State) Audit() error { return fmt.Errorf("x y") }`, ""},
		{`func f() { panic(fmt.Sprint("x y")) }`, ""},
		{`func f(s string) bool { return s == "one-word" }`, ""},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package mapper; import "fmt"; `+row.body, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(sentencesIn(f, map[string]bool{}), "\n")
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: found %q, want %q", row.body, got, row.want)
		}
	}
}

// sentencesIn lists the places in a file that build or contain sentences, and records the
// functions that may do so.
func sentencesIn(f *ast.File, used map[string]bool) (found []string) {
	for _, decl := range f.Decls {
		name := ""
		if fn, ok := decl.(*ast.FuncDecl); ok {
			name = fn.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if mayHoldWords(n) {
				return false
			}
			what := words(n)
			switch {
			case what == "":
			case speakers[name] != "":
				used[name] = true
			case strings.HasPrefix(strings.ToLower(name), "audit"): // a broken invariant is a bug of ours
			default:
				found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), what))
			}
			return true
		})
	}
	return found
}

// mayHoldWords reports whether words are allowed below a node: a panic, the tag of a
// field, a policy's description.
func mayHoldWords(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return true
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.Ident)
		return ok && f.Name == "panic"
	case *ast.Field:
		return n.Tag != nil
	case *ast.KeyValueExpr:
		key, ok := n.Key.(*ast.Ident)
		return ok && key.Name == "Doc"
	}
	return false
}

// oldSentences are the sentences of older versions that identify their stops.
var oldSentences = []string{"time limit of ", "time slot of ", "and others need the room"}

// words returns a description of how a node builds or contains a sentence, or returns "".
func words(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "fmt" {
			return "fmt." + n.Sel.Name
		}
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		if n.Kind == token.STRING && (err != nil || strings.Contains(text, " ")) && !slices.Contains(oldSentences, text) {
			return n.Value
		}
	}
	return ""
}
