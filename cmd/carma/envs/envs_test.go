package envs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/runner/api"
)

func folders(t *testing.T, home string, list ...string) {
	t.Helper()
	for _, dir := range list {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFind checks the folder layouts of conda, mamba and micromamba, and the variables by which
// their shells mark the active environment.
func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		folders []string // below the home
		env     map[string]string
		listed  []string          // in ~/.conda/environments.txt
		files   map[string]string // settings, below the home; of the system below machine
		ask     string
		want    string // below the home, or empty if not found
		say     string // part of the refusal
	}{
		"miniconda":                {folders: []string{"miniconda3/envs/exp/conda-meta"}, ask: "exp", want: "miniconda3/envs/exp"},
		"mambaforge":               {folders: []string{"mambaforge/envs/exp/conda-meta"}, ask: "exp", want: "mambaforge/envs/exp"},
		"micromamba":               {folders: []string{"micromamba/envs/exp/conda-meta"}, ask: "exp", want: "micromamba/envs/exp"},
		"micromamba 2":             {folders: []string{".local/share/mamba/envs/exp/conda-meta"}, ask: "exp", want: ".local/share/mamba/envs/exp"},
		"in the home, system-wide": {folders: []string{".conda/envs/exp/conda-meta"}, ask: "exp", want: ".conda/envs/exp"},
		"base":                     {folders: []string{"miniconda3/conda-meta"}, ask: "base", want: "miniconda3"},
		"of the active one": {folders: []string{"miniconda3/envs/exp/conda-meta", "x/envs/exp/conda-meta", "x/envs/on/conda-meta"},
			env: map[string]string{"CONDA_PREFIX": "x/envs/on"}, ask: "exp", want: "x/envs/exp"},
		"of the conda in use": {folders: []string{"miniconda3/envs/exp/conda-meta", "x/envs/exp/conda-meta"},
			env: map[string]string{"CONDA_EXE": "x/bin/conda"}, ask: "exp", want: "x/envs/exp"},
		"of micromamba's root": {folders: []string{"miniconda3/envs/exp/conda-meta", "x/envs/exp/conda-meta"},
			env: map[string]string{"MAMBA_ROOT_PREFIX": "x"}, ask: "exp", want: "x/envs/exp"},
		"envs_dirs of the user": {folders: []string{"lab/envs/exp/conda-meta", "miniconda3/envs/exp/conda-meta"},
			files: map[string]string{".condarc": "channels: [conda-forge]\nenvs_dirs:\n  - ~/none\n  - ~/lab/envs\n"}, ask: "exp", want: "lab/envs/exp"},
		"envs_dirs, another file of the user": {folders: []string{"lab/exp/conda-meta"}, files: map[string]string{".conda/condarc.d/lab.yaml": "envs_dirs: ~/lab"}, ask: "exp", want: "lab/exp"},
		"envs_dirs of the machine":            {folders: []string{"lab/exp/conda-meta"}, files: map[string]string{"machine/etc/conda/.condarc": "envs_path: ['$HOME/lab']"}, ask: "exp", want: "lab/exp"},
		"the user's before the machine's": {folders: []string{"a/exp/conda-meta", "b/exp/conda-meta"},
			files: map[string]string{"machine/etc/conda/condarc": "envs_dirs: [~/a]", ".condarc": "envs_dirs: [~/b]"}, ask: "exp", want: "b/exp"},
		"of the environment that is active before the user's": {folders: []string{"a/exp/conda-meta", "b/exp/conda-meta", "x/envs/on"},
			files: map[string]string{"x/envs/on/.condarc": "envs_dirs: [~/a]", ".condarc": "envs_dirs: [~/b]"}, env: map[string]string{"CONDA_PREFIX": "x/envs/on"}, ask: "exp", want: "a/exp"},
		"CONDA_ENVS_PATH before files": {folders: []string{"a/exp/conda-meta", "b/exp/conda-meta"},
			files: map[string]string{".condarc": "envs_dirs: [~/b]"}, env: map[string]string{"CONDA_ENVS_PATH": "a"}, ask: "exp", want: "a/exp"},
		"CONDA_ENVS_DIRS": {folders: []string{"a/exp/conda-meta", "miniconda3/envs/exp/conda-meta"}, env: map[string]string{"CONDA_ENVS_DIRS": "a"}, ask: "exp", want: "a/exp"},
		"CONDARC":         {folders: []string{"a/exp/conda-meta"}, files: map[string]string{"x/rc": "envs_dirs: [~/a]"}, env: map[string]string{"CONDARC": "x/rc"}, ask: "exp", want: "a/exp"},
		"a slip, set folders": {folders: []string{"lab/exp/conda-meta", "miniconda3/envs/two/conda-meta"}, files: map[string]string{".condarc": "envs_dirs: [~/lab]"}, ask: "exq",
			say: "--conda exq: no conda environment of that name in ~/lab, ~/miniconda3/envs; did you mean exp? there are exp, two"},
		"none, set folders":     {files: map[string]string{".condarc": "envs_dirs: [~/lab]"}, ask: "exp", say: "no conda environment was found in ~/lab; write the folder of one"},
		"settings that are bad": {files: map[string]string{".condarc": "envs_dirs: {a: b}"}, ask: "exp", say: "/.condarc: envs_dirs is no list of folders; write for example"},
		"settings, no YAML":     {files: map[string]string{".condarc": "a: [b\nc"}, ask: "exp", say: "/.condarc: line "},
		"nothing set":           {folders: []string{"miniconda3/envs/exp/conda-meta"}, files: map[string]string{".condarc": "envs_dirs:\n"}, ask: "exp", want: "miniconda3/envs/exp"},
		"listed":                {folders: []string{"y/envs/exp/conda-meta"}, listed: []string{"y/envs/exp"}, ask: "exp", want: "y/envs/exp"},
		"beside a listed one":   {folders: []string{"y/envs/exp/conda-meta", "y/envs/two/conda-meta"}, listed: []string{"y/envs/two"}, ask: "exp", want: "y/envs/exp"},
		"listed, made by path":  {folders: []string{"proj/env/conda-meta"}, listed: []string{"proj/env"}, ask: "env", want: "proj/env"},
		"listed, gone":          {listed: []string{"proj/env"}, ask: "env", say: "no conda environment was found"},
		"a path":                {folders: []string{"proj/env/conda-meta"}, ask: "proj/env/", want: "proj/env"},
		"a path of the home":    {folders: []string{"proj/env/conda-meta"}, ask: "~/proj/env", want: "proj/env"},
		"a path up":             {ask: "../../x", say: "x is no conda environment: it has no folder conda-meta"},
		"a folder that is none": {folders: []string{"miniconda3/envs/exp/bin"}, ask: "exp", say: "no conda environment was found in ~/miniconda3/envs; write the folder of one"},
		"a slip":                {folders: []string{"miniconda3/envs/exp/conda-meta", "miniconda3/conda-meta"}, ask: "epx", say: "no conda environment of that name in ~/miniconda3/envs; did you mean exp? there are base, exp"},
		"many":                  {folders: many(20), ask: "zz", say: "e09, e10, e11, ..."},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			folders(t, home, append(c.folders, ".conda")...)
			var lines []string
			for _, l := range c.listed {
				lines = append(lines, filepath.Join(home, l))
			}
			if err := os.WriteFile(filepath.Join(home, ".conda/environments.txt"), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
			for file, text := range c.files {
				folders(t, home, filepath.Dir(file))
				if err := os.WriteFile(filepath.Join(home, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p := place{folder: home, home: home, system: filepath.Join(home, "machine"), env: func(name string) string {
				if name == "HOME" {
					return home
				}
				if c.env[name] == "" {
					return ""
				}
				return filepath.Join(home, c.env[name])
			}}
			got, err := p.find("--conda "+c.ask, c.ask)
			switch {
			case c.want == "" && (err == nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n")):
				t.Errorf("%s, %v; want a refusal with %q", got, err, c.say)
			case c.want != "" && (err != nil || got != filepath.Join(home, c.want)):
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func many(n int) (folders []string) {
	for i := range n {
		folders = append(folders, "miniconda3/envs/e"+string(rune('0'+i/10))+string(rune('0'+i%10))+"/conda-meta")
	}
	return folders
}

// TestSettle: the variables of an environment are added once, and the submitter's
// variables override them.
func TestSettle(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	folders(t, home, "env/conda-meta")
	state := `{"version": 1, "env_vars": {"B": "2", "A": "1", "GONE": "***unset***", "OWN": "theirs"}}`
	if err := os.WriteFile(filepath.Join(home, "env/conda-meta/state"), []byte(state), 0o644); err != nil {
		t.Fatal(err)
	}
	s := api.Submit{Conda: "./env", Env: []string{"OWN=mine"}}
	for range 2 { // carma rerun settles an environment again
		if err := Settle(&s, home); err != nil {
			t.Fatal(err)
		}
		if want := []string{"OWN=mine", "A=1", "B=2"}; s.Conda != filepath.Join(home, "env") || s.WorkDir != home || !slices.Equal(s.Env, want) {
			t.Fatalf("%+v, want variables %q", s, want)
		}
	}
	image := api.Submit{Image: "img"}
	if err := Settle(&image, home); err != nil || image.WorkDir != "" {
		t.Errorf("a task with an image: %+v, %v", image, err)
	}
}
