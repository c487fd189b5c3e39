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

// Docker has no state between created and running. So a container that may be parked
// begins with carma-init, which waits for a file in a folder of the host and then
// executes the container's own program. The names on disk and in labels (hold, release)
// stay, so that containers of older versions are found.
const (
	// labelPark names the folder on the host.
	labelPark = "carma.docker/hold"
	goFile    = "release"
	// The paths of the program and the folder in a container.
	initTarget = containers.InitTarget
	parkTarget = "/.carma/hold"
)

// parking makes and releases parked containers.
type parking struct {
	e         *engine
	init, dir string // [Options].Init and ParkDir
}

// CanPark returns an error if carma-init is missing or the engine is on another machine.
func (pk *parking) CanPark() error {
	if pk.init == "" || pk.dir == "" {
		return errors.New("carma-init is not there, which parks Docker's containers; it belongs beside carma (make build)")
	}
	if _, err := os.Stat(pk.init); err != nil {
		return fmt.Errorf("carma-init, which parks Docker's containers: %w", err)
	}
	if host := pk.e.conn.Load().cli.DaemonHost(); !local(host) {
		return fmt.Errorf("the engine at %s is not this machine's", host)
	}
	return nil
}

// makeParked puts carma-init before the container's own program. It returns the folder in
// which carma-init waits for the file, or "" if there is no command to park.
func (pk *parking) makeParked(ctx context.Context, cli *client.Client, spec containers.Spec, c *container.Config, h *container.HostConfig) (string, error) {
	argv := slices.Concat(spec.Entrypoint, spec.Command)
	if len(spec.Entrypoint) == 1 && spec.Entrypoint[0] == "" { // an empty entrypoint clears the image's
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
		return "", nil // the engine refuses this with its own message
	}
	if err := os.MkdirAll(pk.dir, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(pk.dir, spec.Name+"-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // readable by every user of a container
	}
	if err != nil {
		return "", err
	}
	c.Entrypoint, c.Cmd = slices.Concat([]string{initTarget, "hold", parkTarget}, argv), nil
	labels := map[string]string{labelPark: dir}
	for k, v := range c.Labels {
		labels[k] = v
	}
	c.Labels = labels
	for source, target := range map[string]string{pk.init: initTarget, dir: parkTarget} {
		if slices.ContainsFunc(h.Mounts, func(m mount.Mount) bool { return m.Target == initTarget && target == initTarget }) {
			continue // it is also the first process later
		}
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: true})
	}
	return dir, nil
}

// parkDir returns the folder of a container that may be parked, or "" for any other
// container. An image can set the label too, so only this driver's folders count.
func (pk *parking) parkDir(c container.InspectResponse) string {
	if c.Config == nil || pk.dir == "" {
		return ""
	}
	dir := c.Config.Labels[labelPark]
	if dir == "" || filepath.Dir(dir) != filepath.Clean(pk.dir) || filepath.Base(dir) == ".." {
		return ""
	}
	return dir
}

// Park starts the container without its program.
func (pk *parking) Park(ctx context.Context, id string) (pid int, err error) {
	what := "park container " + short(id)
	defer pk.e.lock(id)()
	c, cli, err := pk.e.inspect(ctx, what, id)
	if err != nil {
		return 0, err
	}
	if state(c.State.Status) == containers.StateExited {
		return 0, nil
	}
	dir := pk.parkDir(c)
	if dir == "" {
		return 0, fmt.Errorf("%s: it was not made to be parked", what)
	}
	if _, err := os.Stat(filepath.Join(dir, goFile)); err == nil {
		return 0, nil
	}
	if state(c.State.Status) == containers.StateCreated {
		if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return 0, pk.e.fail(ctx, cli, what, err)
		}
		if c, _, err = pk.e.inspect(ctx, what, id); err != nil {
			return 0, err
		}
	}
	return c.State.Pid, nil
}

// unpark lets the program of a parked container begin.
func (pk *parking) unpark(c container.InspectResponse) error {
	dir := pk.parkDir(c)
	if dir == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(dir, goFile))
	if err != nil {
		return err
	}
	return f.Close()
}

// forgetParked removes the folder of a container that could be parked.
func (pk *parking) forgetParked(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// parkDirOf returns the folder of the container id, or empty if it has none.
func (pk *parking) parkDirOf(ctx context.Context, cli *client.Client, id string) string {
	if pk.dir == "" {
		return ""
	}
	res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return "" // the container is gone, or its folder stays
	}
	return pk.parkDir(res.Container)
}

// BeforeGone returns false, because the engine removes the control group as soon as the
// program has ended.
func (pk *parking) BeforeGone(func(ctx context.Context, id string)) bool { return false }
