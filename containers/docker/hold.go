package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"carma/containers"
)

// Docker has no container that is made in the kernel and not running. So a
// container that may be held begins with a program of ours (command carma-init),
// which waits for the file release in a folder of the host and then becomes the
// container's own program.
const (
	// labelHold is the folder, on the host.
	labelHold = "carma.docker/hold"
	release   = "release"
	// Where a container has the program and the folder.
	initTarget = "/.carma/init"
	holdTarget = "/.carma/hold"
)

// CanHold says why containers cannot be held: the program is missing, or the
// engine is another machine's.
func (d *Driver) CanHold() error {
	if d.opts.Init == "" || d.opts.HoldDir == "" {
		return errors.New("carma-init is not there, which holds Docker's containers; it belongs beside carma (make build)")
	}
	if _, err := os.Stat(d.opts.Init); err != nil {
		return fmt.Errorf("carma-init, which holds Docker's containers: %w", err)
	}
	if host := d.conn.Load().cli.DaemonHost(); !local(host) {
		return fmt.Errorf("the engine at %s is not this machine's", host)
	}
	return nil
}

// makeHeld puts our program in front of a container's own, and returns the
// folder of its release.
func (d *Driver) makeHeld(ctx context.Context, cli *client.Client, spec containers.Spec, c *container.Config, h *container.HostConfig) (string, error) {
	argv := slices.Concat(spec.Entrypoint, spec.Command)
	if len(spec.Entrypoint) == 1 && spec.Entrypoint[0] == "" { // the image's is cleared
		argv = slices.Clone(spec.Command)
	}
	if len(spec.Entrypoint) == 0 {
		img, err := cli.ImageInspect(ctx, spec.Image)
		if err != nil {
			return "", err
		}
		if img.Config != nil {
			args := spec.Command
			if len(args) == 0 {
				args = img.Config.Cmd
			}
			argv = slices.Concat(img.Config.Entrypoint, args)
		}
	}
	if len(argv) == 0 {
		return "", nil // the engine has its own words for this
	}
	if err := os.MkdirAll(d.opts.HoldDir, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(d.opts.HoldDir, spec.Name+"-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // whoever the container runs as
	}
	if err != nil {
		return "", err
	}
	c.Entrypoint, c.Cmd = slices.Concat([]string{initTarget, "hold", holdTarget}, argv), nil
	labels := map[string]string{labelHold: dir}
	for k, v := range c.Labels {
		labels[k] = v
	}
	c.Labels = labels
	for source, target := range map[string]string{d.opts.Init: initTarget, dir: holdTarget} {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: true})
	}
	return dir, nil
}

// holdDir is the folder of a container that may be held; empty: it is none. The
// label may be an image's: only folders that are ours count.
func (d *Driver) holdDir(c container.InspectResponse) string {
	if c.Config == nil || d.opts.HoldDir == "" {
		return ""
	}
	dir := c.Config.Labels[labelHold]
	if dir == "" || filepath.Dir(dir) != filepath.Clean(d.opts.HoldDir) || filepath.Base(dir) == ".." {
		return ""
	}
	return dir
}

// Hold starts the container with its program held.
func (d *Driver) Hold(ctx context.Context, id string) (pid int, err error) {
	what := "hold container " + short(id)
	defer d.lock(id)()
	c, cli, err := d.inspect(ctx, what, id)
	if err != nil {
		return 0, err
	}
	if state(c.State.Status) == containers.StateExited {
		return 0, nil
	}
	dir := d.holdDir(c)
	if dir == "" {
		return 0, fmt.Errorf("%s: it was not made to be held", what)
	}
	if _, err := os.Stat(filepath.Join(dir, release)); err == nil {
		return 0, nil
	}
	if state(c.State.Status) == containers.StateCreated {
		if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return 0, d.fail(ctx, cli, what, err)
		}
		if c, _, err = d.inspect(ctx, what, id); err != nil {
			return 0, err
		}
	}
	return c.State.Pid, nil
}

// letGo lets a held container's program run.
func (d *Driver) letGo(c container.InspectResponse) error {
	dir := d.holdDir(c)
	if dir == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(dir, release))
	if err != nil {
		return err
	}
	return f.Close()
}

// forgetHold removes the folder of a container's release.
func (d *Driver) forgetHold(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// holdDirOf is the folder of the container id; empty: it has none.
func (d *Driver) holdDirOf(ctx context.Context, cli *client.Client, id string) string {
	if d.opts.HoldDir == "" {
		return ""
	}
	res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return "" // it is gone, or its folder stays behind
	}
	return d.holdDir(res.Container)
}

// BeforeGone returns false: the engine removes the control group as soon as the
// program has ended.
func (d *Driver) BeforeGone(func(ctx context.Context, id string)) bool { return false }
