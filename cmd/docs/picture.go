package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// A picture for the light and for the dark theme has no words in Markdown: the README
// writes it in HTML. Of all raw HTML only this gets into the site, and of its attributes
// only those that say what is shown.
var (
	rawTag       = regexp.MustCompile(`^<(/?)(picture|source|img)\b([^>]*)>$`)
	rawAttribute = regexp.MustCompile(`\b(srcset|src|media|width|alt)="([^"]*)"`)
)

// pictureTag returns the part of a picture that raw HTML is, written anew, and the file
// that it shows; all are empty if it is something else.
func pictureTag(raw string) (safe, file string) {
	tag := rawTag.FindStringSubmatch(raw)
	if tag == nil {
		return "", ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<%s%s", tag[1], tag[2])
	for _, a := range rawAttribute.FindAllStringSubmatch(tag[3], -1) {
		name, value := a[1], html.UnescapeString(a[2])
		if name == "src" || name == "srcset" {
			if strings.Contains(value, ":") { // of the site only
				return "", ""
			}
			file = value
		}
		fmt.Fprintf(&b, ` %s="%s"`, name, html.EscapeString(value))
	}
	return b.String() + ">", file
}

// rawText is the source of raw HTML.
func rawText(n *ast.RawHTML, source []byte) string { return string(n.Segments.Value(source)) }

// pictures writes the pictures among raw HTML, and nothing else of it.
type pictures struct{}

func (pictures) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			safe, _ := pictureTag(rawText(n.(*ast.RawHTML), source))
			_, _ = w.WriteString(safe)
		}
		return ast.WalkSkipChildren, nil
	})
}
