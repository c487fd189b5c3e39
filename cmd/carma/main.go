// Command carma is a job runner for a shared GPU server: the daemon and the
// command line that talks to it.
//
// Package root has the commands. They only wire: they read the configuration, hand each
// package its options, and turn answers into text. Results go to stdout, everything else
// to stderr. carma-kubernetes (containers/kubernetes/cmd) has the same commands, and what
// needs Kubernetes' client; carma becomes it where that is needed.
package main

import "carma/cmd/carma/root"

// version is set by the linker.
var version = "dev"

func main() { root.Main(version, nil) }
