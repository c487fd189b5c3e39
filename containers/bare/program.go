package bare

import (
	"path/filepath"
	"slices"
	"strings"
)

// Program is a program of the machine, or of one environment on it.
type Program struct {
	Conda, Venv string // folder of a conda or a virtual environment; the machine's programs are used if both are empty
	User, Home  string // of the submitter, or empty if unknown
	Command     []string
}

// systemPath is the PATH for the machine's programs. Docker uses the same for images that
// set none.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Env returns the variables by which the program finds its environment. It leaves out
// variables that have sets.
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

// shell hands the rest of its words to bash where the machine has it: scripts of
// packages that an environment runs at its activation are often written for it.
const shell = `s=/bin/sh; if [ -x /bin/bash ]; then s=/bin/bash; fi; exec $s -c "$0" carma "$@"`

// activate does what conda activate does beside setting variables, and becomes
// the program. The root environment is called base, as conda calls it. A script that fails
// does not end it, also not one that sets -e: shells ignore that before ||.
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
