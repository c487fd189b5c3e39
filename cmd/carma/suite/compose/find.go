package compose

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/consts"
)

// Find returns the files of a suite if the user names none: the files of COMPOSE_FILE,
// otherwise compose.yaml in the folder or the nearest one above it, with its override
// file. Relative names in COMPOSE_FILE start at the folder. It returns nil if there is
// none.
func Find(o Options) ([]string, error) {
	env, err := variables(o)
	if err != nil {
		return nil, err
	}
	if list := env[consts.ComposeFilePath]; list != "" {
		by := env[consts.ComposePathSeparator]
		if by == "" {
			by = string(filepath.ListSeparator)
		}
		return slices.DeleteFunc(strings.Split(list, by), func(name string) bool { return name == "" }), nil
	}
	for folder := o.Folder; ; folder = filepath.Dir(folder) {
		for _, name := range cli.DefaultFileNames {
			if path := filepath.Join(folder, name); exists(path) {
				return WithOverride(path), nil
			}
		}
		if folder == filepath.Dir(folder) {
			return nil, nil
		}
	}
}

// WithOverride returns a file, followed by the override file next to it if both files have
// Compose's default names.
func WithOverride(path string) []string {
	if !slices.Contains(cli.DefaultFileNames, filepath.Base(path)) {
		return []string{path}
	}
	for _, name := range cli.DefaultOverrideFileNames {
		if over := filepath.Join(filepath.Dir(path), name); exists(over) {
			return []string{path, over}
		}
	}
	return []string{path}
}

// chosen returns the active profiles: the given profiles, otherwise the profiles of
// COMPOSE_PROFILES, otherwise the profile "", as in docker compose.
func (o *Options) chosen(env map[string]string) []string {
	if len(o.Profiles) > 0 {
		return o.Profiles
	}
	all := strings.Split(env[consts.ComposeProfiles], ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}
