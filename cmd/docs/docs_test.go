package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/runner"
)

// TestSite: the whole site is made, no link within it is broken, and nothing of it is
// fetched from elsewhere.
func TestSite(t *testing.T) {
	out := filepath.Join(t.TempDir(), "site")
	n, err := write("../..", out, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Errorf("%d pages", n)
	}
	outside := regexp.MustCompile(`<(?:script|img|link)[^>]*(?:src|href)="(?:https?:)?//`)
	html, _ := filepath.Glob(filepath.Join(out, "*.html"))
	deep, _ := filepath.Glob(filepath.Join(out, "*", "*.html"))
	deeper, _ := filepath.Glob(filepath.Join(out, "*", "*", "*.html"))
	deep = append(deep, deeper...)
	for _, file := range append(html, deep...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := outside.FindString(string(text)); m != "" {
			t.Errorf("%s fetches %s", file, m)
		}
		if strings.Count(string(text), `aria-current="page"`) != 1 || !strings.Contains(string(text), ">1.2.3<") {
			t.Errorf("%s: the menu does not say where one is, or the version is not there", file)
		}
	}
	if len(html)+len(deep) != n {
		t.Errorf("%d files for %d pages", len(html)+len(deep), n)
	}
	index, err := os.ReadFile(filepath.Join(out, "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	var parts []struct{ F, P, T, X string }
	list := strings.TrimSuffix(strings.TrimPrefix(string(index), "const pages = "), ";\n")
	if err := json.Unmarshal([]byte(list), &parts); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tasks.html#figures", "api.html#get-v1tasks", "index.html"} {
		found := false
		for _, p := range parts {
			found = found || p.F == want && p.T != "" && p.X != ""
		}
		if !found {
			t.Errorf("the search does not know %s", want)
		}
	}
}

// TestBrokenLinks: what would lead nowhere is named with its page.
func TestBrokenLinks(t *testing.T) {
	make := func(text string) error {
		a, err := parse("README", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b, err := parse("docs/tasks", []byte("# Tasks\n\n## Two words, `code`\n\n## Two words, `code`\n"))
		if err != nil {
			t.Fatal(err)
		}
		return (&site{root: "../..", pages: []*page{a, b}}).check()
	}
	for text, want := range map[string]string{
		"# A\n\n[x](docs/tasks.md#two-words-code) [y](docs/tasks.md#two-words-code-1) [z](#a) [w](go.mod) [v](mailto:a@b)": "",
		"# A\n\n[x](docs/tasks.md#three)": `README.md: docs/tasks has no heading "three"`,
		"# A\n\n[x](docs/faq.md)":         "README.md: faq.html is no page",
		"# A\n\n[x](docs/gone.md#a)":      "README.md: there is no docs/gone.md",
		"# A\n\n[x](#b)":                  `README.md: README has no heading "b"`,
	} {
		err := make(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestExamples: each request with a body has an example, of fields that the API knows and
// with those that it wants.
func TestExamples(t *testing.T) {
	text, err := runner.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			for _, c := range op.RequestBody.Content {
				at := method + " " + path
				known[at] = true
				var body any
				if err := json.Unmarshal([]byte(bodies[at]), &body); err != nil {
					t.Errorf("%s: %v", at, err)
				}
				for _, wrong := range d.misfits(c.Schema, body, "") {
					t.Errorf("%s: %s", at, wrong)
				}
			}
		}
	}
	for at := range bodies {
		if !known[at] {
			t.Errorf("%s is no request with a body", at)
		}
	}
	if wrong := d.misfits(schema{Ref: "#/components/schemas/Submission"}, map[string]any{"task": 1.0}, ""); len(wrong) != 2 {
		t.Errorf("a wrong name and a missing one: %q", wrong)
	}
}

// misfits says what of a value is not as a schema has it.
func (d *document) misfits(s schema, v any, at string) (wrong []string) {
	if name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]; name != "" {
		s = d.Components.Schemas[name]
	}
	kinds, one := s.Type.([]any)
	if !one {
		kinds = []any{s.Type}
	}
	is := map[bool]string{true: "null"}[v == nil]
	switch v := v.(type) {
	case string:
		is = "string"
		if _, err := time.Parse(time.RFC3339, v); s.Format == "date-time" && err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %q is no time", at, v))
		}
	case bool:
		is = "boolean"
	case float64:
		is = "number"
		if slices.Contains(kinds, any("integer")) && v == math.Trunc(v) {
			is = "integer"
		}
	case []any:
		is = "array"
		for i, x := range v {
			wrong = append(wrong, d.misfits(*s.Items, x, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		is = "object"
		for _, name := range s.Required {
			if _, there := v[name]; !there {
				wrong = append(wrong, at+"."+name+" is missing")
			}
		}
		for name, x := range v {
			if field, there := s.Properties[name]; there {
				wrong = append(wrong, d.misfits(field, x, at+"."+name)...)
			} else if len(s.Properties) > 0 {
				wrong = append(wrong, at+"."+name+" is unknown")
			}
		}
	}
	if !slices.Contains(kinds, any(is)) {
		wrong = append(wrong, fmt.Sprintf("%s is %s, not %v", at, is, s.Type))
	}
	return wrong
}

// TestPictures: a picture of two themes is on the page, and nothing else of raw HTML.
func TestPictures(t *testing.T) {
	p, err := parse("README", []byte(`<picture><source media="(prefers-color-scheme: dark)" srcset="docs/d.png" onload="x()"><img src="docs/l.png" width="800" alt="a &quot;page&quot;"></picture>`+
		`<img src="https://x.example/y.png"><img src="javascript:x()"><iframe src="z"></iframe>`))
	if err != nil {
		t.Fatal(err)
	}
	want := `<picture><source media="(prefers-color-scheme: dark)" srcset="docs/d.png"><img src="docs/l.png" width="800" alt="a &#34;page&#34;"></picture>`
	if got := strings.TrimSpace(string(p.body)); got != "<p>"+want+"</p>" {
		t.Errorf("%s", got)
	}
	if !slices.Equal(p.images, []string{"docs/d.png", "docs/l.png"}) {
		t.Errorf("files: %q", p.images)
	}
}

// TestTables: headers that are empty are none, and a head of such is left out.
func TestTables(t *testing.T) {
	for source, want := range map[string]string{
		"| a | |\n|---|---|\n| 1 | 2 |\n": "<thead><tr><th>a</th><td></td></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody>",
		"| | |\n|---|---|\n| 1 | 2 |\n":   "<tbody><tr><td>1</td><td>2</td></tr></tbody>",
	} {
		p, err := parse("README", []byte("# A\n\n"+source))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(string(p.body), "\n", ""); !strings.Contains(got, "<table>"+want+"</table>") {
			t.Errorf("%s", got)
		}
	}
}

// TestRawHTML: Markdown cannot bring scripts into the site.
func TestRawHTML(t *testing.T) {
	p, err := parse("README", []byte("# A\n\n<script>alert(1)</script>\n\na <b onclick=x>b</b> [c](javascript:x)\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "onclick", "javascript:"} {
		if strings.Contains(string(p.body), bad) {
			t.Errorf("%s in %s", bad, p.body)
		}
	}
}
