package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
	for _, want := range []string{"suspend.html#figures", "api.html#get-v1tasks", "index.html"} {
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
		return (&site{pages: []*page{a, b}}).check()
	}
	for text, want := range map[string]string{
		"# A\n\n[x](docs/tasks.md#two-words-code) [y](docs/tasks.md#two-words-code-1) [z](#a) [w](go.mod) [v](mailto:a@b)": "",
		"# A\n\n[x](docs/tasks.md#three)": `README.md: docs/tasks has no heading "three"`,
		"# A\n\n[x](docs/suspend.md)":     "README.md: suspend.html is no page",
		"# A\n\n[x](#b)":                  `README.md: README has no heading "b"`,
	} {
		err := make(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
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
