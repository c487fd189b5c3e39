package main

import (
	"bytes"
	"html/template"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// page is one page, made from a file of Markdown.
type page struct {
	name    string // below the root, without .md
	file    string // below the site
	section string
	title   string
	body    template.HTML
	parts   []part
	links   []string // to other pages and headings, as files of the site
	away    []string // files and folders that are linked and no pages, below the root
	images  []string // relative to the page
}

// part is what is below one heading.
type part struct {
	title, anchor string
	level         int
	text          string
}

// layout frames every page.
var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(pictures{}, 100))))

// read makes a page.
func read(root, name string) (*page, error) {
	if name == apiPage {
		return api()
	}
	source, err := os.ReadFile(filepath.Join(root, name+".md"))
	if err != nil {
		return nil, err
	}
	return parse(name, source)
}

func parse(name string, source []byte) (*page, error) {
	p := &page{name: name, file: fileOf(name)}
	ctx := parser.NewContext(parser.WithIDs(&slugs{seen: map[string]int{}}))
	doc := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(ctx))
	var plain strings.Builder
	flush := func() {
		if n := len(p.parts); n > 0 {
			p.parts[n-1].text = strings.Join(strings.Fields(plain.String()), " ")
		}
		plain.Reset()
	}
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				plain.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			flush()
			id, _ := n.AttributeString("id")
			anchor, _ := id.([]byte)
			p.parts = append(p.parts, part{title: words(n, source), anchor: string(anchor), level: n.Level})
			if p.title == "" {
				p.title = p.parts[0].title
			}
		case *ast.Link:
			n.Destination = []byte(p.link(n, string(n.Destination)))
		case *ast.Image:
			p.images = append(p.images, string(n.Destination))
		case *ast.RawHTML:
			if _, file := pictureTag(rawText(n, source)); file != "" {
				p.images = append(p.images, file)
			}
		case *ast.Text:
			plain.Write(n.Segment.Value(source))
			plain.WriteByte(' ')
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				plain.Write(line.Value(source))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	flush()
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, doc); err != nil {
		return nil, err
	}
	p.body = template.HTML(headed(b.String())) // goldmark leaves raw HTML out, but for pictures
	return p, nil
}

var (
	noHead   = regexp.MustCompile(`<thead>\s*<tr>\s*(<th></th>\s*)+</tr>\s*</thead>\s*`)
	noHeader = regexp.MustCompile(`<th></th>`)
)

// headed takes the empty headers out of tables, which Markdown cannot leave out: a screen
// reader would name them.
func headed(body string) string {
	return noHeader.ReplaceAllString(noHead.ReplaceAllString(body, ""), "<td></td>")
}

// link returns where a link leads in the site. One to a file that is no page leads
// to nothing that a reader of the site has; it becomes a title.
func (p *page) link(n *ast.Link, to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" {
		return to
	}
	file, anchor, _ := strings.Cut(to, "#")
	switch {
	case file == "":
	case inMenu(path.Join(path.Dir(p.name), file)):
		target := fileOf(strings.TrimSuffix(path.Join(path.Dir(p.name), file), ".md"))
		rel, err := filepath.Rel(filepath.FromSlash(path.Dir(p.file)), filepath.FromSlash(target))
		if err != nil {
			return to
		}
		file = filepath.ToSlash(rel)
	default:
		p.away = append(p.away, path.Join(path.Dir(p.name), file))
		n.Title = []byte("in the repository: " + p.away[len(p.away)-1])
		n.SetAttributeString("class", []byte("away"))
		return "#"
	}
	if anchor != "" {
		file += "#" + anchor
	}
	p.links = append(p.links, file)
	return file
}

// short is the page's name in the menu.
func (p *page) short() string {
	switch p.name {
	case "README":
		return "What carma is"
	case "CHANGELOG":
		return "Changes"
	}
	title, _, _ := strings.Cut(p.title, ": ")
	return title
}

// contents are the headings that the page's own menu shows.
func (p *page) contents() (all []map[string]string) {
	for _, x := range p.parts {
		if x.level == 2 {
			all = append(all, map[string]string{"Title": x.title, "Anchor": x.anchor})
		}
	}
	return all
}

// words is the text of a node.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// slugs makes the anchors of headings as GitHub does, because the links between the
// pages are written for that.
type slugs struct{ seen map[string]int }

func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(string(util.TrimLeftSpace(util.TrimRightSpace(value)))) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	slug := b.String()
	n := s.seen[slug]
	s.seen[slug] = n + 1
	if n > 0 {
		slug += "-" + string(rune('0'+n%10))
	}
	return []byte(slug)
}

func (s *slugs) Put(value []byte) { s.seen[string(value)]++ }
