// Command carma is a job runner for a shared GPU server: the daemon and the command line
// that talks to it.
//
// Package root contains the commands. They only connect packages: they read the
// configuration, pass each package its options, and turn answers into text. Results go to
// stdout, everything else to stderr. carma-kubernetes (containers/kubernetes/cmd) has the
// same commands, plus the parts that need Kubernetes' client; carma executes it where
// needed.
package main

import "carma/cmd/carma/root"

// version is set by the linker.
var version = "dev"

func main() { root.Main(version, nil) }
