// Package engine opens the configured container engine, for the daemon and for commands
// that talk to an engine directly.
package engine

import (
	"errors"
	"os"
	"path/filepath"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/containers"
	"carma/containers/engines"
)

// Open returns the configured container engine. It does not connect.
func Open(config settings.Config) (containers.Driver, error) {
	engine, ok := engines.Named(config.Driver)
	if !ok { // the configuration is valid, so another program supports it
		return nil, cli.ErrNoKubernetes
	}
	d, err := engine.Open(engines.Settings{
		DataDir: config.DataDir, Network: config.Network, Attach: containers.Attach(config.Attach), Init: InitProgram(),
		DockerHost: config.DockerHost, ContainerdAddress: config.ContainerdAddress, ContainerdNamespace: config.ContainerdNamespace,
		Kubeconfig: config.Kubeconfig, KubernetesNamespace: config.KubernetesNamespace, KubernetesNamespaces: config.KubernetesNamespaces, TokenAudience: config.TokenAudience, KubernetesFolders: config.KubernetesFolders,
	})
	if errors.Is(err, engines.ErrSettings) {
		return nil, cli.Usagef("", "%v", err)
	}
	return d, err
}

// InitProgram returns the path of carma-init next to this program, or "" if it does not
// exist.
func InitProgram() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), "carma-init")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
