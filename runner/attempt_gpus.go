package runner

import (
	"carma/internal/units"
	"carma/runner/label"
)

// uuids returns the UUIDs of the attempt's GPUs.
func (w *worker) uuids() []string {
	grants := w.grants()
	uuids := make([]string, len(grants))
	for i, g := range grants {
		uuids[i] = string(g.GPU)
	}
	return uuids
}

// mostGranted returns the largest of the attempt's grants.
func (w *worker) mostGranted() (most units.Bytes) {
	for _, g := range w.launch.Grants {
		most = max(most, g.Memory)
	}
	return most
}

// containerName returns the name of the attempt's container.
func (w *worker) containerName() string {
	return label.ContainerName(w.deps.Instance, w.launch.Task, w.launch.Attempt)
}

// identity returns the labels that identify the attempt's container.
func (w *worker) identity() map[string]string {
	return label.Identity(w.deps.Instance, w.launch.Task, w.launch.Attempt, w.rec.Nonce)
}
