package test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// TestLinks: every link and picture of the pages leads to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	for _, wrong := range brokenLinks(allPages(t)) {
		t.Error(wrong)
	}
}

// allPages returns all Markdown files of the repository, by path from this folder.
func allPages(t *testing.T) map[string]page {
	pages := map[string]page{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "shared" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			source, err := os.ReadFile(name)
			pages[name] = readPage(source)
			return err
		}
		return nil
	})
	if err != nil || len(pages) < 25 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	return pages
}

// TestNamedFiles: every Go file and every folder of the repository that a page names exists.
// Its path begins at the root of the repository or in the page's folder. A file without a
// folder is anywhere.
func TestNamedFiles(t *testing.T) {
	everywhere := map[string]bool{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		everywhere[filepath.Base(name)] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	exists := func(pattern string) bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) > 0
	}
	for name, p := range allPages(t) {
		for _, code := range p.codes {
			top, _, deep := strings.Cut(code, "/")
			isGo := strings.HasSuffix(code, ".go")
			switch {
			case strings.Contains(code, " "): // a command
			case top == "bin": // what make builds
			case isGo && !deep && !everywhere[code],
				deep && (isGo || top != "" && top != ".." && exists("../"+top)) && !exists("../"+code) && !exists(filepath.Join(filepath.Dir(name), code)):
				t.Errorf("%s names %s, which does not exist", name, code)
			}
		}
	}
}

// TestBrokenLinks: a broken link is reported with its page.
func TestBrokenLinks(t *testing.T) {
	tasks := readPage([]byte("# Tasks\n\n## Two words, `code`\n\n## Two words, `code`\n"))
	for text, want := range map[string]string{
		"# A\n\n[x](docs/tasks.md#two-words-code) [y](docs/tasks.md#two-words-code-1) [z](#a) [w](go.mod) [v](mailto:a@b)": "",
		"# A\n\n[x](docs/tasks.md#three)": "../README.md: docs/tasks.md#three: no such heading",
		"# A\n\n[x](docs/gone.md#a)":      "../README.md: docs/gone.md#a: no such file",
		"# A\n\n![x](docs/gone.png)":      "../README.md: docs/gone.png: no such file",
		"a <img src=\"docs/gone.png\">":   "../README.md: docs/gone.png: no such file",
		"# A\n\n[x](#b)":                  "../README.md: #b: no such heading",
	} {
		got := brokenLinks(map[string]page{"../README.md": readPage([]byte(text)), "../docs/tasks.md": tasks})
		if strings.Join(got, "\n") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// page has the links of a Markdown file, its texts in backquotes, and the anchors of its
// headings.
type page struct {
	links   []string
	codes   []string
	anchors map[string]bool
}

// rawLink finds the pictures in HTML, which Markdown needs for dark themes.
var rawLink = regexp.MustCompile(`\b(?:src|srcset)="([^"]*)"`)

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough))

func readPage(source []byte) page {
	p := page{anchors: map[string]bool{}}
	_ = ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.addAnchor(plainText(n, source))
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.CodeSpan:
			p.codes = append(p.codes, plainText(n, source))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.RawHTML:
			for _, m := range rawLink.FindAllSubmatch(n.Segments.Value(source), -1) {
				p.links = append(p.links, string(m[1]))
			}
		}
		return ast.WalkContinue, nil
	})
	return p
}

// addAnchor adds the anchor that GitHub gives a heading.
func (p *page) addAnchor(heading string) {
	anchor := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(heading))
	if p.anchors[anchor] {
		anchor += "-1"
	}
	p.anchors[anchor] = true
}

// plainText returns the text of a node.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// brokenLinks lists the links to files and headings that do not exist.
func brokenLinks(pages map[string]page) (broken []string) {
	for name, p := range pages {
		for _, link := range p.links {
			file, anchor, _ := strings.Cut(link, "#")
			if strings.Contains(file, ":") {
				continue // of another site
			}
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			_, err := os.Stat(to)
			target, isPage := pages[to]
			switch {
			case err != nil && !isPage:
				broken = append(broken, name+": "+link+": no such file")
			case anchor != "" && isPage && !target.anchors[anchor]:
				broken = append(broken, name+": "+link+": no such heading")
			}
		}
	}
	return broken
}
