// Package root contains carma's command line: all commands, their help and the messages
// for wrong words. A program with these commands calls [Main].
package root

import (
	"os"
	"runtime/debug"
	"strings"

	"carma/cmd/carma/agent"
	"carma/cmd/carma/cli"
	"carma/containers/containerd"
	"carma/runner/gpu/devices"
	"carma/runner/suspend"
)

// Main runs the command line of this process and exits. agentRun runs carma agent, or is
// nil if another program contains it, see [cli.BecomeKubernetes].
func Main(version string, agentRun agent.Run) {
	if len(os.Args) > 1 && os.Args[1] == containerd.LogCommand { // started by containerd
		os.Exit(containerd.RunLogger(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == suspend.HelperCommand { // started by the daemon
		os.Exit(suspend.RunHelper(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == suspend.ProgramCommand { // started in a container by carma doctor --prove
		os.Exit(suspend.RunProgram(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == devices.ChildCommand { // started by the daemon
		os.Exit(devices.RunChild(os.Stdin, os.Stdout))
	}
	if info, ok := debug.ReadBuildInfo(); ok && version == "dev" && strings.HasPrefix(info.Main.Version, "v") {
		version = info.Main.Version // go install: the commit, in Go's format
	}
	os.Exit(Execute(cli.New(os.Stdin, os.Stdout, os.Stderr, version), os.Args[1:], agentRun))
}
