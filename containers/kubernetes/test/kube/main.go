// Kube contains a whole Kubernetes in one program: etcd, the control plane and a kubelet. The
// first argument names the part to start, and each part has the flags of the original program.
// It is built from Go modules, and only tests use it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// parts makes the command of each part. etcd has its own main function.
var parts = map[string]func() *cobra.Command{
	"apiserver":          apiserver.NewAPIServerCommand,
	"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"controller-manager": controllers.NewControllerManagerCommand,
	"kubelet":            func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	// The parts read os.Args themselves.
	name := os.Args[1]
	os.Args = os.Args[1:]
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	part, ok := parts[name]
	if !ok {
		usage()
	}
	os.Exit(cli.Run(part()))
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: kube etcd|apiserver|scheduler|controller-manager|kubelet FLAGS")
	os.Exit(2)
}
