// Package suites contains the Compose files that ship with carma, for `carma suite up
// NAME`. All except torch run simulated tasks.
package suites

import (
	"embed"
	"strings"
)

//go:embed *.compose.yaml
var files embed.FS

const ending = ".compose.yaml"

// Names returns the names of the suites, sorted.
func Names() []string {
	var names []string
	entries, _ := files.ReadDir(".") // embedded, so it cannot fail
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ending))
	}
	return names
}

// Content returns the Compose file of a suite and the name of that file, or false if there
// is no such suite.
func Content(name string) (content []byte, file string, ok bool) {
	file = name + ending
	content, err := files.ReadFile(file)
	return content, file, err == nil
}
