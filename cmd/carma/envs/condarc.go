package envs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"carma/cmd/carma/cli"
)

// settingsFiles returns the files in which conda and mamba look for settings, highest
// precedence first.
func (p place) settingsFiles() (list []string) {
	below := func(dir string) {
		if dir == "" {
			return
		}
		more, _ := filepath.Glob(filepath.Join(dir, "condarc.d", "*.y*ml")) // in order
		slices.Reverse(more)
		list = append(append(list, more...), filepath.Join(dir, "condarc"), filepath.Join(dir, ".condarc"))
	}
	if own := p.env("CONDARC"); own != "" {
		list = append(list, own)
	}
	below(p.env("CONDA_PREFIX"))
	if p.home != "" {
		list = append(list, filepath.Join(p.home, ".mambarc"), filepath.Join(p.home, ".condarc"))
		below(filepath.Join(p.home, ".conda"))
		below(filepath.Join(p.home, ".config/conda"))
	}
	if dir := p.env("XDG_CONFIG_HOME"); dir != "" {
		below(filepath.Join(dir, "conda"))
	}
	for _, root := range p.inUse() {
		below(root)
	}
	below(filepath.Join(p.system, "var/lib/conda"))
	below(filepath.Join(p.system, "etc/conda"))
	return list
}

// configured returns the folders with environments that the user or the administrator has
// set, in conda's order: folders from the variables, then folders from each file. A file
// that is not YAML is an error, as in conda.
func (p place) configured() (dirs []string, err error) {
	add := func(dir string) {
		if dir = p.expand(dir); filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, name := range []string{"CONDA_ENVS_DIRS", "CONDA_ENVS_PATH"} {
		for _, dir := range filepath.SplitList(p.env(name)) {
			add(dir)
		}
	}
	for _, file := range p.settingsFiles() {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // most do not exist
		}
		var settings struct {
			Dirs words `yaml:"envs_dirs"`
			Path words `yaml:"envs_path"` // older name
		}
		if err := yaml.Unmarshal(b, &settings); err != nil {
			text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n")
			return nil, cli.Usagef("write for example: envs_dirs: [~/envs]; or name the folder of the environment", "%s: %s", file, strings.TrimSuffix(text, ":"))
		}
		for _, dir := range slices.Concat(settings.Dirs, settings.Path) {
			add(dir)
		}
	}
	return dirs, nil
}

// expand makes a folder in the settings a full path, or returns "" if there is none.
func (p place) expand(dir string) string {
	dir = os.Expand(strings.TrimSpace(dir), p.env)
	if below, ofHome := strings.CutPrefix(dir, "~"); ofHome && p.home != "" && (below == "" || below[0] == '/') {
		dir = p.home + below
	}
	if dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(p.folder, dir)
	}
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}

// words is a list of words, or a single word.
type words []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		*w = filepath.SplitList(n.Value)
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return errors.New("envs_dirs is no list of folders")
	}
	*w = list
	return nil
}
