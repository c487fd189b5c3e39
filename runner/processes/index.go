// Package processes maps the containers and the processes of this machine to attempts. The
// attempts record their containers in an [Index], which finds the container of a process in
// the control groups of /proc.
package processes

import (
	"sync"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
)

// Index maps the engine's ID and the name of each carma container to its attempt.
type Index struct {
	root string // where /proc is found

	mu sync.Mutex
	of map[string]gpu.AttemptKey
}

// New returns an empty index. /proc is found in root.
func New(root string) *Index { return &Index{root: root, of: map[string]gpu.AttemptKey{}} }

// Root returns the folder with /proc.
func (x *Index) Root() string { return x.root }

// SetRoot changes the folder with /proc. It must not be called once the index is in use.
func (x *Index) SetRoot(root string) { x.root = root }

// Len returns the number of names that belong to an attempt.
func (x *Index) Len() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.of)
}

// Add records the container of an attempt, by its ID and name; forget removes it.
func (x *Index) Add(key gpu.AttemptKey, names ...string) (forget func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, name := range names {
		x.of[name] = key
	}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, name := range names {
			if x.of[name] == key {
				delete(x.of, name)
			}
		}
	}
}

// Owner is a [gpu.Owner]. If a task starts a container inside its own container, the inner
// container's processes belong to the task too.
func (x *Index) Owner(pid int) (model.TaskID, int, bool) {
	names, err := cgroup.Containers(x.root, pid)
	if err != nil {
		return 0, 0, false // the process has ended, or is in no container
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, name := range names {
		if key, ok := x.of[name]; ok {
			return key.Task, key.Attempt, true
		}
	}
	return 0, 0, false
}
