package containerd

import (
	"context"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// SetMemory implements [containers.Resizer].
func (d *Driver) SetMemory(ctx context.Context, id string, bytes int64) error {
	what := "set the memory of container " + id
	r, err := d.runs(ctx, id)
	if err != nil || r == nil || !controls("memory") {
		return d.fail(ctx, what, err)
	}
	var to specs.LinuxResources
	limitTo(&to, bytes, 0, 0)
	body, err := typeurl.MarshalAnyToProto(&to)
	if err != nil {
		return err
	}
	_, err = d.cli.TaskService().Update(ctx, &tasks.UpdateTaskRequest{ContainerID: id, Resources: body})
	return d.fail(ctx, what, native(err))
}
