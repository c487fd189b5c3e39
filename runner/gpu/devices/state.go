package devices

import (
	"cmp"
	"path"
	"slices"

	"carma/internal/lazyregexp"
)

// State is the accessibility of a device node.
type State string

// The states.
const (
	// Unknown means that it could not be determined.
	Unknown State = "unknown"
	// Openable means that the kernel allows reading and writing the device.
	Openable State = "openable"
	// Denied means that the device rules of the control group forbid it.
	Denied State = "denied"
	// Gone means that the node was removed, or no driver serves its number.
	Gone State = "gone"
)

// Lost reports whether programs cannot open the device any more.
func (s State) Lost() bool { return s == Denied || s == Gone }

// Node is a device node of a container.
type Node struct {
	// Path is its path in the container, such as "/dev/nvidia0".
	Path  string `json:"path"`
	State State  `json:"state"`
	// Device is its device number.
	Device uint64 `json:"device,omitempty"`
}

// Result is the state of one container's nodes.
type Result struct {
	Nodes []Node `json:"nodes,omitempty"`
	// Why is the reason why the nodes are unknown, or empty.
	Why string `json:"why,omitempty"`
}

var nodeName = lazyregexp.New(`^nvidia(\d+|ctl|-uvm)$`)

// needed reports whether a CUDA program opens the node of this name in /dev.
func needed(name string) bool { return nodeName().MatchString(name) }

// Missing adds the nodes in before that no longer exist, as gone.
func (r Result) Missing(before []Node) Result {
	for _, old := range before {
		if !slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.Path == old.Path }) {
			r.Nodes = append(slices.Clip(r.Nodes), Node{Path: old.Path, State: Gone, Device: old.Device})
		}
	}
	slices.SortFunc(r.Nodes, func(a, b Node) int { return cmp.Compare(a.Path, b.Path) })
	return r
}

// State returns the combined state of all nodes. Denied takes precedence over gone, and
// gone over openable. Without nodes it is unknown.
func (r Result) State() State {
	if r.Why != "" || len(r.Nodes) == 0 {
		return Unknown
	}
	for _, s := range []State{Denied, Gone, Unknown} {
		if slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.State == s }) {
			return s
		}
	}
	return Openable
}

// Lost returns the paths of the nodes that cannot be opened.
func (r Result) Lost() (paths []string) {
	for _, n := range r.Nodes {
		if n.State.Lost() {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// devPath returns the path of a node in a container.
func devPath(name string) string { return path.Join("/dev", name) }
