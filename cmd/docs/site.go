package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// site is all pages with what is known of their links.
type site struct {
	root    string // the repository
	version string
	pages   []*page
	images  []image
}

// image is a picture that a page shows, below the root and below the site.
type image struct{ from, to string }

// load reads all pages.
func load(root, version string) (*site, error) {
	s := &site{root: root, version: version}
	if err := complete(root); err != nil {
		return nil, err
	}
	for _, part := range menu {
		for _, name := range part.pages {
			p, err := read(root, name)
			if err != nil {
				return nil, err
			}
			p.section = part.title
			s.pages = append(s.pages, p)
		}
	}
	for _, p := range s.pages {
		for _, src := range p.images {
			from := path.Join(path.Dir(p.name), src)
			if _, err := os.Stat(filepath.Join(root, from)); err != nil {
				return nil, fmt.Errorf("%s.md shows %s: %w", p.name, src, err)
			}
			s.images = append(s.images, image{from, path.Join(path.Dir(p.file), src)})
		}
	}
	return s, nil
}

// complete reports pages of docs/ that the menu has forgotten.
func complete(root string) error {
	return fs.WalkDir(os.DirFS(root), "docs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		if !inMenu(name) {
			return fmt.Errorf("%s is in no part of the menu; add it in cmd/docs/menu.go", name)
		}
		return nil
	})
}

// inMenu reports whether a file of the repository is a page.
func inMenu(file string) bool {
	name, ok := strings.CutSuffix(file, ".md")
	return ok && slices.ContainsFunc(menu, func(s section) bool { return slices.Contains(s.pages, name) })
}

// fileOf is the page of the site for one of the repository.
func fileOf(name string) string {
	switch name {
	case "README":
		return "index.html"
	case "SECURITY": // docs/security is a page too
		return "reporting.html"
	case "docs/hardware/README":
		return "hardware/index.html"
	}
	return strings.ToLower(strings.TrimPrefix(name, "docs/")) + ".html"
}

// at returns the page of a file of the site.
func (s *site) at(file string) *page {
	i := slices.IndexFunc(s.pages, func(p *page) bool { return p.file == file })
	if i < 0 {
		return nil
	}
	return s.pages[i]
}

// check finds links within the site, and to files of the repository, that lead nowhere.
func (s *site) check() error {
	var wrong []string
	for _, p := range s.pages {
		if q := s.at(p.file); q != p {
			wrong = append(wrong, fmt.Sprintf("%s.md and %s.md are both %s", q.name, p.name, p.file))
		}
		for _, file := range p.away {
			if _, err := os.Stat(filepath.Join(s.root, file)); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s.md: there is no %s", p.name, file))
			}
		}
		for _, link := range p.links {
			file, anchor, _ := strings.Cut(link, "#")
			if file == "" {
				file = p.file
			} else {
				file = path.Join(path.Dir(p.file), file)
			}
			to := s.at(file)
			switch {
			case to == nil:
				wrong = append(wrong, fmt.Sprintf("%s.md: %s is no page", p.name, link))
			case anchor != "" && !slices.ContainsFunc(to.parts, func(x part) bool { return x.anchor == anchor }):
				wrong = append(wrong, fmt.Sprintf("%s.md: %s has no heading %q", p.name, to.name, anchor))
			}
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("links lead nowhere:\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// render makes a page's HTML.
func (s *site) render(p *page) []byte {
	var b bytes.Buffer
	up := strings.Repeat("../", strings.Count(p.file, "/"))
	type entry struct {
		Title, Href string
		Here        bool
	}
	type group struct {
		Title string
		Pages []entry
	}
	var groups []group
	for _, q := range s.pages {
		if len(groups) == 0 || groups[len(groups)-1].Title != q.section {
			groups = append(groups, group{Title: q.section})
		}
		g := &groups[len(groups)-1]
		g.Pages = append(g.Pages, entry{q.short(), up + q.file, q == p})
	}
	data := map[string]any{"Title": p.title, "Body": p.body, "Up": up, "Menu": groups, "Parts": p.contents(), "Version": s.version}
	if err := layout.Execute(&b, data); err != nil {
		panic(err) // the template is ours
	}
	return b.Bytes()
}
