// Package envs finds the Python environments of the user who submits a task. Only this
// process can resolve a name or a relative path, not the daemon.
package envs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/cmd/carma/cli"
	"carma/internal/suggest"
	"carma/runner/api"
)

// Settle makes the environment of a task without an image a full path, and sets its
// working folder to the current one. Relative paths start at folder. Settle does not
// change other tasks.
func Settle(s *api.Submit, folder string) (err error) {
	if !s.Bare() {
		return nil
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	if s.Conda != "" {
		if s.Conda, err = here(folder).find("--conda "+s.Conda, s.Conda); err != nil {
			return err
		}
		for _, kv := range variables(s.Conda) {
			name, _, _ := strings.Cut(kv, "=")
			if !slices.ContainsFunc(s.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
				s.Env = append(s.Env, kv)
			}
		}
	}
	if s.Venv != "" {
		if s.Venv, err = venv(s.Venv, folder); err != nil {
			return err
		}
	}
	if s.WorkDir == "" {
		s.WorkDir = folder
	}
	return nil
}

// Named finds a conda environment by the value of -e, which may have been meant as a
// variable.
func Named(word string) (prefix string, err error) {
	folder, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	prefix, err = here(folder).find("-e "+word, word)
	if usage, ok := err.(*cli.UsageError); ok && os.Getenv(word) != "" {
		usage.Hint = strings.TrimPrefix(usage.Hint+"; ", "; ") + "for your variable write -e " + word + `="$` + word + `", or the image before --`
	}
	return prefix, err
}

// place contains the places to search for environments.
type place struct {
	folder string // base of relative paths
	home   string
	system string // root of the machine's settings
	env    func(string) string
}

func here(folder string) place {
	home, _ := os.UserHomeDir()
	return place{folder, home, "/", os.Getenv}
}

// inUse returns the installations that the submitter's shell uses.
func (p place) inUse() (list []string) {
	add := func(dir string) {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	if prefix := p.env("CONDA_PREFIX"); prefix != "" {
		add(rootOf(prefix))
	}
	if program := p.env("CONDA_EXE"); program != "" {
		add(filepath.Dir(filepath.Dir(program)))
	}
	add(p.env("MAMBA_ROOT_PREFIX"))
	return list
}

// roots returns the folders in which conda, mamba and micromamba are installed. Folders
// in use come first. Each contains environments in its folder envs.
func (p place) roots() (list []string) {
	list = p.inUse()
	add := func(dir string) {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	if p.home != "" {
		for _, name := range []string{"miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".local/share/mamba", ".conda"} {
			add(filepath.Join(p.home, name))
		}
	}
	for _, dir := range []string{"/opt/conda", "/opt/miniconda3", "/opt/anaconda3", "/opt/miniforge3"} {
		add(dir)
	}
	return list
}

// rootOf returns the installation root of an environment.
func rootOf(prefix string) string {
	if envs := filepath.Dir(filepath.Clean(prefix)); filepath.Base(envs) == "envs" {
		return filepath.Dir(envs)
	}
	return prefix
}

// known returns the environments by name, their names in search order, and the searched
// folders. Of two with the same name the first counts, as in conda.
func (p place) known() (prefixes map[string]string, names, looked []string, err error) {
	prefixes = map[string]string{}
	dirs, err := p.configured()
	if err != nil {
		return nil, nil, nil, err
	}
	add := func(name, prefix string) {
		if _, there := prefixes[name]; !there && isConda(prefix) {
			prefixes[name], names = prefix, append(names, name)
		}
	}
	roots := p.roots()
	listed, _ := os.ReadFile(filepath.Join(p.home, ".conda/environments.txt")) // all environments that conda has made for the user
	lines := strings.Fields(string(listed))
	for _, prefix := range lines {
		if root := rootOf(prefix); filepath.IsAbs(root) && root != prefix && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	look := func(dir string, always bool) {
		envs, err := os.ReadDir(dir)
		if (err == nil || always) && !slices.Contains(looked, dir) {
			looked = append(looked, dir)
		}
		for _, e := range envs {
			add(e.Name(), filepath.Join(dir, e.Name()))
		}
	}
	for _, dir := range dirs {
		look(dir, true)
	}
	for _, root := range roots {
		add("base", root)
		look(filepath.Join(root, "envs"), false)
	}
	for _, prefix := range lines {
		if filepath.IsAbs(prefix) {
			add(filepath.Base(prefix), prefix)
		}
	}
	return prefixes, names, looked, nil
}

// isConda reports whether a folder is a conda environment.
func isConda(prefix string) bool {
	info, err := os.Stat(filepath.Join(prefix, "conda-meta"))
	return err == nil && info.IsDir()
}

// find returns the folder of an environment, given by name or path. asked is the user's
// text.
func (p place) find(asked, name string) (string, error) {
	if strings.ContainsRune(name, '/') || strings.HasPrefix(name, "~") || name == "." || name == ".." {
		path := cli.ExpandHome(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.folder, path)
		}
		if path = filepath.Clean(path); !isConda(path) {
			return "", cli.Usagef("conda create -p makes one", "%s: %s is no conda environment: it has no folder conda-meta", asked, path)
		}
		return path, nil
	}
	prefixes, names, looked, err := p.known()
	if err != nil {
		return "", err
	}
	if prefix, ok := prefixes[name]; ok {
		return prefix, nil
	}
	if len(names) == 0 {
		return "", cli.Usagef("write the folder of one: --conda ~/miniconda3/envs/"+name, "%s: no conda environment was found%s", asked, p.in(looked))
	}
	hint := "there are " + some(names)
	if near := suggest.Near(name, names); len(near) > 0 {
		hint = "did you mean " + near[0] + "? " + hint
	}
	return "", cli.Usagef(hint, "%s: no conda environment of that name%s", asked, p.in(looked))
}

// in lists the searched folders, short enough for a line.
func (p place) in(looked []string) string {
	const most = 4
	if len(looked) == 0 {
		return ""
	}
	var list []string
	for _, dir := range looked[:min(most, len(looked))] {
		if below, ok := strings.CutPrefix(dir, p.home+"/"); ok && p.home != "" {
			dir = "~/" + below
		}
		list = append(list, dir)
	}
	if len(looked) > most {
		list = append(list, "...")
	}
	return " in " + strings.Join(list, ", ")
}

// some returns the first names of a list.
func some(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", ..."
}

// variables returns the variables set for an environment by conda env config vars.
func variables(prefix string) (env []string) {
	b, err := os.ReadFile(filepath.Join(prefix, "conda-meta/state"))
	if err != nil {
		return nil
	}
	var state struct {
		Vars map[string]string `json:"env_vars"`
	}
	if json.Unmarshal(b, &state) != nil {
		return nil
	}
	for name, value := range state.Vars {
		if name != "" && value != "***unset***" {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

// venv returns the full path of a virtual environment.
func venv(dir, folder string) (string, error) {
	path := cli.ExpandHome(dir)
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	if _, err := os.Stat(filepath.Join(path, "pyvenv.cfg")); err != nil {
		return "", cli.Usagef("python3 -m venv "+dir+" makes one", "--venv %s: no virtual environment: %s: %v", dir, filepath.Join(path, "pyvenv.cfg"), cli.Reason(err))
	}
	return filepath.Clean(path), nil
}
