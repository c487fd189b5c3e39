package containerd

import (
	"context"
	"strings"

	"carma/containers"
)

// Attached reads the container's specification and, if this process is allowed to, the
// /dev of the running container.
func (d *Driver) Attached(ctx context.Context, id string) (containers.Attachment, error) {
	what := "look at GPUs of container " + id
	r, err := d.look(ctx, id)
	if err != nil {
		return containers.Attachment{}, d.fail(ctx, what, err)
	}
	var a containers.Attachment
	if s := r.spec(); s != nil && s.Process != nil {
		for _, kv := range s.Process.Env {
			if v, ok := strings.CutPrefix(kv, visibleGPUs+"="); ok {
				a.Visible = v
			}
		}
	}
	if !r.running() {
		return a, nil
	}
	nodes := containers.DeviceNodes(int(r.task.Pid))
	// The pid may have passed to another process while its /dev was read.
	if t, err := d.task(ctx, id); err == nil && t != nil && t.Pid == r.task.Pid && (&record{task: t}).running() {
		a.Nodes = nodes
	}
	return a, nil
}
