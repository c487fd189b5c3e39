package containerd

import (
	"context"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"carma/containers"
)

// SetMemory implements [containers.Resizer].
func (d *Driver) SetMemory(ctx context.Context, id string, bytes int64) error {
	var to specs.LinuxResources
	limitTo(&to, bytes, 0, 0)
	return d.setLimits(ctx, "set the memory of container "+id, id, "memory", &to)
}

// SetCPUs implements [containers.Resizer].
func (d *Driver) SetCPUs(ctx context.Context, id string, cpus float64, weight int64) error {
	var to specs.LinuxResources
	limitTo(&to, 0, cpus, 0)
	if cpus == 0 {
		to.CPU = &specs.LinuxCPU{Quota: new(int64(-1))} // no limit
	}
	spec := containers.Spec{CPUWeight: weight}
	if shares := uint64(spec.CPUShares()); shares > 0 {
		to.CPU.Shares = &shares
	}
	return d.setLimits(ctx, "set the processors of container "+id, id, "cpu", &to)
}

// setLimits changes resources that a controller of the kernel limits. It does nothing
// without that controller.
func (d *Driver) setLimits(ctx context.Context, what, id, controller string, to *specs.LinuxResources) error {
	r, err := d.runs(ctx, id)
	if err != nil || r == nil || !controls(controller) {
		return d.fail(ctx, what, err)
	}
	body, err := typeurl.MarshalAnyToProto(to)
	if err != nil {
		return err
	}
	_, err = d.cli.TaskService().Update(ctx, &tasks.UpdateTaskRequest{ContainerID: id, Resources: body})
	return d.fail(ctx, what, native(err))
}
