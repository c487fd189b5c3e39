// Command carma-kubernetes is carma with the parts that need the Kubernetes client: the driver
// kubernetes, carma agent, and the connection to a daemon over TLS. It has all commands of
// carma. carma executes it if the configuration needs Kubernetes ([cli.BecomeKubernetes]).
package main

import (
	"carma/cmd/carma/cli"
	"carma/cmd/carma/contexts"
	"carma/cmd/carma/root"
	"carma/containers"
	"carma/containers/engines"
	"carma/containers/kubernetes"
	"carma/containers/kubernetes/agent"
	"carma/containers/kubernetes/cluster"
	"carma/containers/kubernetes/kubeconfig"
)

// version is set by the linker.
var version = "dev"

func main() {
	register()
	root.Main(version, agent.Apart(version))
}

// register adds the commands and drivers that carma lacks.
func register() {
	engines.All = append(engines.All, engines.Engine{Name: "kubernetes", Driver: open})
	contexts.OverTLS = kubeconfig.Connect
}

func open(s engines.Settings) (containers.Driver, error) {
	d, err := kubernetes.New(kubernetes.Options{Kubeconfig: s.Kubeconfig, Namespace: s.KubernetesNamespace, Namespaces: s.KubernetesNamespaces, Audience: s.TokenAudience, HostPaths: s.KubernetesFolders})
	if err != nil {
		return nil, cli.Usagef("say where it is: --kubeconfig FILE", "driver kubernetes: %v", err)
	}
	return cluster.Driver{Driver: d}, nil
}
