// Package test tests carma on a real Kubernetes, which up.sh in this folder starts on this
// machine. It tests the installation by the manifests, failures of parts of the cluster and of
// carma, and the speed with many claims. The tests have the build tag kubernetes and need root;
// make kubernetes runs them.
package test
