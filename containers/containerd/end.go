package containerd

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"carma/internal/failpoint"
)

// Remove deletes the container, by force, with its output.
func (d *Driver) Remove(ctx context.Context, id string) error {
	defer d.lock(id)()
	return d.fail(ctx, "remove container "+id, d.remove(ctx, id))
}

func (d *Driver) remove(ctx context.Context, id string) error {
	c, err := d.cli.ContainerService().Get(ctx, id)
	if errdefs.IsNotFound(native(err)) {
		return nil
	}
	if err != nil {
		return native(err)
	}
	// The label hides the container from here on: its task is deleted before the container.
	if err := d.note(ctx, id, map[string]string{labelRemoving: "yes"}); err != nil {
		return err
	}
	failpoint.Hit("containerd-removal-noted")
	if err := d.endTask(ctx, id); err != nil {
		return err
	}
	failpoint.Hit("containerd-task-deleted")
	if c.Labels[labelStarted] != "" {
		if err := d.network.leave(ctx, id); err != nil {
			return fmt.Errorf("CNI: %w", err)
		}
	}
	if dir := c.Labels[labelDir]; dir != "" {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	d.whole.Delete(id)
	d.tookOver.Delete(id)
	loaded, err := d.cli.LoadContainer(ctx, id)
	if err == nil {
		err = loaded.Delete(ctx, client.WithSnapshotCleanup)
	}
	if err = native(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// endTask kills and deletes a container's task.
func (d *Driver) endTask(ctx context.Context, id string) error {
	t, err := d.task(ctx, id)
	if err == nil && unmade(t) { // a hanging shim does not answer requests either
		t, err = d.settle(ctx, id)
	}
	if err != nil || t == nil {
		return err
	}
	if t.Status != task.Status_STOPPED {
		if err := d.signal(ctx, id, "", syscall.SIGKILL); err != nil {
			return err
		}
		if err := d.awaitTask(ctx, id); err != nil {
			return err
		}
	}
	d.closePorts(id)
	if d.beforeGone != nil {
		d.beforeGone(ctx, id)
	}
	_, err = d.cli.TaskService().Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: id})
	if err = native(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
