package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/contexts"
	"carma/cmd/carma/settings"
)

// KubernetesProgram is the name of the program with carma's commands and the parts that
// need Kubernetes' client: the driver kubernetes, the agent, and daemons over TLS.
const KubernetesProgram = "carma-kubernetes"

// Become replaces this process by the first of these programs that has the version, with
// the same arguments and PID. It returns if there is none.
func Become(ctx context.Context, version string, paths ...string) {
	for _, path := range paths {
		if path != "" && versionOf(ctx, path) == version {
			_ = syscall.Exec(path, os.Args, os.Environ()) // returns only if the program cannot be run
		}
	}
}

// versionOf returns the version that one of carma's programs prints, or empty if the
// program does not exist or prints none.
func versionOf(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "carma ")
}

// BecomeKubernetes replaces this process by [KubernetesProgram]. It returns an error if
// the program is not installed.
func BecomeKubernetes(cmd *cobra.Command) error {
	var paths []string
	if self, err := os.Executable(); err == nil {
		paths = append(paths, filepath.Join(filepath.Dir(self), KubernetesProgram), filepath.Join(filepath.Dir(self), "../libexec/carma", KubernetesProgram))
	}
	found, _ := exec.LookPath(KubernetesProgram)
	Become(cmd.Context(), cmd.Root().Version, append(paths, "/usr/lib/carma/"+KubernetesProgram, found)...)
	return ErrNoKubernetes
}

// ErrNoKubernetes means that this program needs [KubernetesProgram], which is not
// installed.
var ErrNoKubernetes = Usagef("install the package of that name, or copy the program beside carma (docs/install.md)", "Kubernetes needs the program %s of carma's version", KubernetesProgram)

// BecomeEarly is [BecomeKubernetes], called before a command has done anything, if its
// configuration needs it. If the program is not installed, the command continues and gets
// the error later.
func BecomeEarly(cmd *cobra.Command) {
	if contexts.OverTLS != nil {
		return
	}
	config, from, err := settings.Load(cmd.Flags())
	if err != nil {
		return
	}
	chosen, _, err := contexts.Choose(ContextFlag(cmd), config, from)
	if config.Driver == "kubernetes" || err == nil && chosen.Remote() {
		_ = BecomeKubernetes(cmd)
	}
}
