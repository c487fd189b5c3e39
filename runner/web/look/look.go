// Package look contains the drawing code that carma's page and the replay's report share:
// colours, times and figures, charts (uPlot, with its licence), and the choice of theme.
// It serves no requests.
package look

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"carma/internal/lazyregexp"
)

//go:embed files
var embedded embed.FS

// Files returns the style sheets and modules. Folder others contains third-party files,
// with their licences.
func Files() fs.FS {
	sub, err := fs.Sub(embedded, "files")
	if err != nil {
		panic(err) // cannot happen, the folder is in the program
	}
	return sub
}

// Text returns the content of one file.
func Text(name string) string {
	text, err := fs.ReadFile(Files(), name)
	if err != nil {
		panic(err) // cannot happen, the files are in the program
	}
	return string(text)
}

var (
	importLine = lazyregexp.New(`(?m)^import (.*) from '\./([^']+)';\n`)
	exported   = lazyregexp.New(`(?m)^export (async function|function|const|class) (\w+)`)
	topLevel   = lazyregexp.New(`(?m)^(?:export )?(?:async function|function|const|let|class) (\w+)`)
)

// Script joins modules to one script, for a self-contained file. Each module comes after
// the modules that it imports, without its imports and exports. Modules are searched in
// own, then in this package. Two modules may not use the same name at top level.
func Script(own fs.FS, main string) (string, error) {
	s := script{own: own, done: map[string]bool{}, names: map[string]string{}}
	if err := s.add(main); err != nil {
		return "", err
	}
	return s.out.String(), nil
}

type script struct {
	own   fs.FS
	out   strings.Builder
	done  map[string]bool
	names map[string]string // module of each top-level name, for look-ups only
}

func (s *script) add(name string) error {
	if s.done[name] {
		return nil
	}
	s.done[name] = true
	text, err := fs.ReadFile(s.own, name)
	if err != nil {
		if text, err = fs.ReadFile(Files(), name); err != nil {
			return fmt.Errorf("no module %s", name)
		}
	}
	for _, m := range importLine().FindAllSubmatch(text, -1) {
		if m[1][0] != '{' || strings.Contains(string(m[1]), " as ") {
			return fmt.Errorf("%s: only import { names } can be joined, not import %s", name, m[1])
		}
		if err := s.add(path.Clean(string(m[2]))); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	body := importLine().ReplaceAllString(string(text), "")
	for _, m := range topLevel().FindAllStringSubmatch(body, -1) {
		if other := s.names[m[1]]; other != "" {
			return fmt.Errorf("%s and %s both have %s", other, name, m[1])
		}
		s.names[m[1]] = name
	}
	body = exported().ReplaceAllString(body, "$1 $2")
	if strings.Contains(body, "\nexport ") || strings.Contains(body, "\nimport ") {
		return fmt.Errorf("%s: an import or export that cannot be joined", name)
	}
	s.out.WriteString(body)
	return nil
}
