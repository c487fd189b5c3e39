package docker

import (
	"context"
	"strings"

	"carma/containers"
	"carma/containers/cdi"
)

// Attached reads the GPUs that the engine was asked for and, if this process is allowed
// to, the /dev of the running container.
func (d *Driver) Attached(ctx context.Context, id string) (containers.Attachment, error) {
	what := "look at GPUs of container " + short(id)
	c, cli, err := d.inspect(ctx, what, id)
	if err != nil {
		return containers.Attachment{}, err
	}
	var a containers.Attachment
	if c.Config != nil {
		for _, kv := range c.Config.Env {
			if v, ok := strings.CutPrefix(kv, visible+"="); ok {
				a.Visible = v // the last one counts
			}
		}
	}
	if c.HostConfig != nil {
		for _, r := range c.HostConfig.DeviceRequests {
			for _, id := range r.DeviceIDs {
				a.Requested = append(a.Requested, strings.TrimPrefix(id, cdi.Kind+"="))
			}
		}
	}
	if !local(cli.DaemonHost()) || c.State.Pid == 0 {
		return a, nil
	}
	nodes := containers.DeviceNodes(c.State.Pid)
	// The pid may have passed to another process while its /dev was read.
	if again, _, err := d.inspect(ctx, what, id); err == nil && again.State.Running && again.State.Pid == c.State.Pid {
		a.Nodes = nodes
	}
	return a, nil
}

// local reports whether an engine's processes run on this machine.
func local(host string) bool { return strings.HasPrefix(host, "unix://") }
