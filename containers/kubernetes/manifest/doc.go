// Package manifest describes the Kubernetes objects of containers: it makes the pod and the
// claim of a container, and the patches that change them later, and it reads the state of a
// container from its pod. It sends no requests.
//
// [Namespaces] owns the names of a daemon's pods: their ids, their namespaces and the label by
// which a daemon recognizes its pods. [Builder] owns the settings that apply to all pods.
package manifest
