package runner

import (
	"sync"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
)

// owners maps the engine's ID and the name of each carma container to its attempt. The
// workers write it, the monitor's source reads it.
type owners struct {
	root string // where /proc is found

	mu sync.Mutex
	of map[string]gpu.AttemptKey
}

func newOwners() *owners { return &owners{root: "/", of: map[string]gpu.AttemptKey{}} }

// add records the container of an attempt; forget removes it.
func (o *owners) add(key gpu.AttemptKey, names ...string) (forget func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range names {
		o.of[name] = key
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, name := range names {
			if o.of[name] == key {
				delete(o.of, name)
			}
		}
	}
}

// owner is a gpu.Owner. If a task starts a container inside its own container, the inner
// container's processes belong to the task too.
func (o *owners) owner(pid int) (model.TaskID, int, bool) {
	names, err := cgroup.Containers(o.root, pid)
	if err != nil {
		return 0, 0, false // the process has ended, or is in no container
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range names {
		if key, ok := o.of[name]; ok {
			return key.Task, key.Attempt, true
		}
	}
	return 0, 0, false
}
