package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// full returns a reason with every field set.
func full(code model.ReasonCode) model.Reason {
	return model.Reason{
		Code: code, Task: 7, GPU: 1, Have: units.GiB, Need: 2 * units.GiB, Of: 3 * units.GiB, Count: 2, More: 1, Limit: 4,
		Span: time.Minute, Most: time.Hour, Name: "ada", Condition: model.AfterOK, Text: "it said so", Remedy: "do this",
		Cause: &model.Reason{Code: model.ReasonRanOut, Have: units.GiB},
	}
}

// constants returns the values of the constants of a type of package model, from its sources.
func constants(t *testing.T, of string) []string {
	t.Helper()
	names, err := filepath.Glob("../model/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != of {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, text)
				}
			}
			return true
		})
	}
	return all
}

// fields are the fields of a sentence.
var fields = regexp.MustCompile(`\{(\w*)`)

// TestEveryReasonHasWords checks that each code of the mapper has its own sentence, with
// figures if the code has some.
func TestEveryReasonHasWords(t *testing.T) {
	codes := constants(t, "ReasonCode")
	if len(codes) < 40 {
		t.Fatalf("only %d codes found: %s", len(codes), codes)
	}
	known := map[model.ReasonCode]bool{}
	for _, c := range codes {
		code := model.ReasonCode(c)
		if known[code] {
			t.Errorf("there are two codes %s", code)
		}
		known[code] = true
		if sentences[code] == "" {
			t.Errorf("%s has no words", code)
		}
		for _, r := range []model.Reason{full(code), {Code: code}, {Code: code, Cause: &model.Reason{}}} {
			text := Reason(r)
			if text == "" && code != model.ReasonText || strings.Contains(text, "%!") || strings.Contains(text, "\n") {
				t.Errorf("%+v reads %q", r, text)
			}
		}
	}
	for code, sentence := range sentences {
		// A field that is not known would panic only when the reason comes.
		for _, field := range fields.FindAllStringSubmatch(sentence, -1) {
			if field[1] != "cause" && values[field[1]] == nil {
				t.Errorf("%s: %q is no field", code, field[1])
			}
		}
		if !known[code] {
			t.Errorf("there are words for %s, which the mapper does not have", code)
		}
	}
	if Reason(model.Reason{}) != "" {
		t.Error("no reason has words")
	}
	if got := Reason(model.Reason{Code: "new", Text: "why"}); got != "for the reason new: why" {
		t.Errorf("a code of a newer version reads %q", got)
	}
}

// TestEveryRuleHasWords checks that each rule that can reject a GPU has a clause. The
// rules that do not concern a GPU are reasons.
func TestEveryRuleHasWords(t *testing.T) {
	aboutNoGPU := map[string]bool{"quota": true, "fair-share": true, "after": true, "delay": true, "group": true, "hold": true, "host": true}
	rules := constants(t, "Rule")
	if len(rules) < 15 {
		t.Fatalf("only %d rules found: %s", len(rules), rules)
	}
	for _, rule := range rules {
		if (clauses[model.Rule(rule)] != "") == aboutNoGPU[rule] {
			t.Errorf("%s: words %q, about a GPU %v", rule, clauses[model.Rule(rule)], !aboutNoGPU[rule])
		}
	}
	for rule, clause := range clauses {
		for _, field := range fields.FindAllStringSubmatch(clause, -1) {
			if parts[field[1]] == nil {
				t.Errorf("%s: %q is no field", rule, field[1])
			}
		}
		text := Rejection(model.Rejection{Index: 3, Rule: rule, Fault: "lost"})
		if !strings.Contains(text, "GPU 3") || strings.Count(text, "GPU 3") != 1 || strings.Contains(text, "%!") {
			t.Errorf("%s reads %q", rule, text)
		}
	}
}
