package bare

import (
	"path/filepath"
	"slices"
	"strings"
)

// Program is a program of the machine, or of an environment on it.
type Program struct {
	Conda, Venv string // folder of a conda or virtual environment; if both are empty, the machine's programs are used
	User, Home  string // the submitter's, or empty if unknown
	Command     []string
}

// systemPath is the PATH for the machine's programs. Docker uses the same for images that
// set none.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Env returns the variables by which the program finds its environment, except variables
// that have already sets.
func (p Program) Env(have []string) (add []string) {
	path := systemPath
	var own []string
	switch {
	case p.Conda != "":
		base, name := p.Conda, p.Conda
		if envs := filepath.Dir(p.Conda); filepath.Base(envs) == "envs" {
			base, name = filepath.Dir(envs), filepath.Base(p.Conda)
		}
		path = p.Conda + "/bin:" + base + "/condabin:" + path
		own = []string{"CONDA_PREFIX=" + p.Conda, "CONDA_DEFAULT_ENV=" + name, "CONDA_SHLVL=1"}
	case p.Venv != "":
		path = p.Venv + "/bin:" + path
		own = []string{"VIRTUAL_ENV=" + p.Venv}
	case p.Home != "":
		path = p.Home + "/.local/bin:" + path
	}
	own = append(own, "PATH="+path)
	if p.Home != "" {
		own = append(own, "HOME="+p.Home)
	}
	if p.User != "" {
		own = append(own, "USER="+p.User, "LOGNAME="+p.User)
	}
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(have, func(h string) bool { return strings.HasPrefix(h, name+"=") }) {
			add = append(add, kv)
		}
	}
	return add
}

// shell runs its arguments with bash if the machine has bash. Many activation scripts of
// conda packages are written for bash.
const shell = `s=/bin/sh; if [ -x /bin/bash ]; then s=/bin/bash; fi; exec $s -c "$0" carma "$@"`

// activate does the part of conda activate that is not done by variables of the
// container, then executes the program. The root environment is called base, as in conda.
// A script that fails does not end activate, even with set -e: shells ignore it before
// ||.
const activate = `if [ -d "$CONDA_PREFIX/condabin" ]; then CONDA_DEFAULT_ENV=base; export CONDA_DEFAULT_ENV; fi
for carma_script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do
  if [ -r "$carma_script" ]; then . "$carma_script" || :; fi
  set +eu
done
unset carma_script
exec "$@"`

// Words returns the command line of the container: the program, in a conda environment
// after the activation scripts of its packages.
func (p Program) Words() []string {
	if p.Conda == "" {
		return p.Command
	}
	return slices.Concat([]string{"/bin/sh", "-c", shell, activate}, p.Command)
}
