// Command carma is a job runner for a shared GPU server: the daemon and the
// command line that talks to it.
//
// This package only wires: it reads the configuration, hands each package its
// options, and turns answers into text. Results go to stdout, everything else
// to stderr.
package main

import (
	"os"
	"runtime/debug"
	"strings"

	"carma/cmd/carma/cli"
	"carma/containers/containerd"
	"carma/runner/gpu/devices"
	"carma/runner/suspend"
)

// version is set by the linker.
var version = "dev"

func main() {
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
		version = info.Main.Version // go install: the commit, as Go writes it
	}
	os.Exit(execute(cli.New(os.Stdin, os.Stdout, os.Stderr, version), os.Args[1:]))
}
