// Command docs writes the documentation as a small site that needs no server: README.md
// and docs/ as pages with a menu and a search, and the API from its OpenAPI document.
//
//	go run ./cmd/docs -out bin/site    # open bin/site/index.html
package main

import (
	"embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed assets
var assets embed.FS

func main() {
	root := flag.String("root", ".", "`folder` of the repository")
	out := flag.String("out", "bin/site", "`folder` that is written anew")
	version := flag.String("version", "dev", "`version` to name")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "docs: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	n, err := write(*root, *out, *version)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s\n", n, filepath.Join(*out, "index.html"))
}

// write makes the site and returns the number of its pages.
func write(root, out, version string) (int, error) {
	s, err := load(root, version)
	if err != nil {
		return 0, err
	}
	if err := s.check(); err != nil {
		return 0, err
	}
	if err := os.RemoveAll(out); err != nil {
		return 0, err
	}
	for _, p := range s.pages {
		if err := put(out, p.file, s.render(p)); err != nil {
			return 0, err
		}
	}
	for _, name := range []string{"site.css", "site.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return 0, err
		}
		if err := put(out, name, b); err != nil {
			return 0, err
		}
	}
	if err := put(out, "index.js", s.index()); err != nil {
		return 0, err
	}
	for _, image := range s.images {
		b, err := os.ReadFile(filepath.Join(root, image.from))
		if err != nil {
			return 0, err
		}
		if err := put(out, image.to, b); err != nil {
			return 0, err
		}
	}
	return len(s.pages), nil
}

func put(out, name string, b []byte) error {
	path := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
