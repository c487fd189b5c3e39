package leave

import "strings"

// Variable is the name of an environment variable. It contains the path, in the container,
// of the folder through which the daemon asks a task to vacate its GPUs.
const Variable = "CARMA_LEAVE"

// Path returns the value of the variable; the last one counts.
func Path(env []string) (path string) {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, Variable+"="); ok {
			path = value
		}
	}
	return path
}
