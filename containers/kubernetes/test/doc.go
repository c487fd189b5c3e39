// Package test tests carma on a real Kubernetes, which up.sh beside it starts on
// this machine: what is installed by the manifests, what happens when parts of the
// cluster or carma are killed, and what many claims come to. The tests have the build
// tag kubernetes and need root; make kubernetes runs them.
package test
