package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"carma/containers"
	"carma/containers/option"
)

var _ containers.Hoster = (*Driver)(nil)

// hosting makes the networks and volumes of suites' helpers, and sets further options of their
// containers.
type hosting struct{ e *engine }

// CanHost returns nil: Docker has networks with names, and volumes.
func (ho *hosting) CanHost() error { return nil }

// host applies [containers.Hosted] to a container. [hosting.furnish] applies the rest
// after the container is made.
func (ho *hosting) host(spec containers.Spec, c *container.Config, h *container.HostConfig) (*network.NetworkingConfig, error) {
	s := spec.Hosted
	if s == nil {
		return nil, nil
	}
	h.NetworkMode = "none"
	if s.Within != "" { // with a shared network the engine refuses settings of the container's own network
		h.NetworkMode, h.ExtraHosts, h.DNS = container.NetworkMode("container:"+s.Within), nil, nil
		c.Hostname, c.Domainname, c.ExposedPorts, h.PortBindings = "", "", nil, nil
	}
	var networking *network.NetworkingConfig
	if len(s.Networks) > 0 { // an old engine accepts one network; the others are joined later
		first := s.Networks[0]
		h.NetworkMode = container.NetworkMode(first.Network)
		networking = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{first.Network: {Aliases: first.Aliases}}}
	}
	for _, v := range s.Volumes {
		h.Mounts = append(h.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: v.Volume, Target: v.Target, ReadOnly: v.ReadOnly, VolumeOptions: &mount.VolumeOptions{NoCopy: v.NoCopy},
		})
	}
	if t := s.Health; t != nil {
		c.Healthcheck = &container.HealthConfig{Test: t.Test, Interval: t.Interval, Timeout: t.Timeout, StartPeriod: t.StartPeriod, Retries: t.Retries}
	}
	switch s.Restart {
	case containers.RestartAlways:
		h.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyAlways}
	case containers.RestartFailed:
		h.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyOnFailure, MaximumRetryCount: s.Tries}
	}
	if s.Reduced {
		h.CapDrop, h.CapAdd = []string{"ALL"}, s.Capabilities
	}
	h.ExtraHosts, h.Sysctls, h.ReadonlyRootfs = append(h.ExtraHosts, s.Hosts...), s.Sysctls, h.ReadonlyRootfs || s.ReadOnly
	if len(s.Tmpfs) > 0 {
		h.Tmpfs = s.Tmpfs
	}
	h.GroupAdd = append(h.GroupAdd, s.Groups...)
	return networking, nil
}

// furnish joins a new container to its other networks. A container that has been
// started is left as it is.
func (ho *hosting) furnish(ctx context.Context, cli *client.Client, what, id string, s *containers.Hosted) error {
	if s == nil || len(s.Networks) < 2 {
		return nil
	}
	c, _, err := ho.e.inspect(ctx, what, id)
	if err != nil {
		return err
	}
	if state(c.State.Status) != containers.StateCreated {
		return nil
	}
	for _, n := range s.Networks[1:] {
		if _, joined := c.NetworkSettings.Networks[n.Network]; joined {
			continue
		}
		if _, err := cli.NetworkConnect(ctx, n.Network, client.NetworkConnectOptions{Container: id, EndpointConfig: &network.EndpointSettings{Aliases: n.Aliases}}); err != nil {
			return ho.e.fail(ctx, cli, what, err)
		}
	}
	return nil
}

// MakeNetwork makes a bridge network.
func (ho *hosting) MakeNetwork(ctx context.Context, n containers.Network) error {
	what := fmt.Sprintf("make network %q", n.Name)
	cli, err := ho.e.client(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	have, err := cli.NetworkInspect(ctx, n.Name, client.NetworkInspectOptions{})
	if err == nil {
		return owned(what, have.Network.Labels, n.Labels)
	}
	if !errdefs.IsNotFound(err) {
		return ho.e.fail(ctx, cli, what, err)
	}
	_, err = cli.NetworkCreate(ctx, n.Name, client.NetworkCreateOptions{Driver: "bridge", Internal: n.Internal, Labels: n.Labels})
	if errdefs.IsConflict(err) || errdefs.IsAlreadyExists(err) {
		err = nil // another goroutine of this daemon was faster
	}
	return ho.e.fail(ctx, cli, what, err)
}

// owned refuses an object that has the name but not the labels.
func owned(what string, have, want map[string]string) error {
	for k, v := range want {
		if have[k] != v {
			return fmt.Errorf("%s: %w: it has not %s=%s", what, containers.ErrTaken, k, v)
		}
	}
	return nil
}

// MakeVolume makes a volume on the engine's disk.
func (ho *hosting) MakeVolume(ctx context.Context, v containers.Volume) (folder string, made bool, err error) {
	what := fmt.Sprintf("make volume %q", v.Name)
	cli, err := ho.e.client(ctx)
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", what, err)
	}
	have, err := cli.VolumeInspect(ctx, v.Name, client.VolumeInspectOptions{})
	if err == nil {
		return have.Volume.Mountpoint, false, owned(what, have.Volume.Labels, v.Labels)
	}
	if !errdefs.IsNotFound(err) {
		return "", false, ho.e.fail(ctx, cli, what, err)
	}
	res, err := cli.VolumeCreate(ctx, client.VolumeCreateOptions{Name: v.Name, Driver: "local", Labels: v.Labels})
	return res.Volume.Mountpoint, true, ho.e.fail(ctx, cli, what, err)
}

// RemoveNetwork removes a network that no container is in.
func (ho *hosting) RemoveNetwork(ctx context.Context, name string) error {
	return ho.e.gone(ctx, fmt.Sprintf("remove network %q", name), func(cli *client.Client) error {
		_, err := cli.NetworkRemove(ctx, name, client.NetworkRemoveOptions{})
		return err
	})
}

// RemoveVolume removes a volume with its files.
func (ho *hosting) RemoveVolume(ctx context.Context, name string) error {
	return ho.e.gone(ctx, fmt.Sprintf("remove volume %q", name), func(cli *client.Client) error {
		_, err := cli.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
		return err
	})
}

// gone makes a call that succeeds if its object does not exist.
func (e *engine) gone(ctx context.Context, what string, call func(*client.Client) error) error {
	cli, err := e.client(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := call(cli); err != nil && !errdefs.IsNotFound(err) {
		return e.fail(ctx, cli, what, err)
	}
	return nil
}

func filters(labels map[string]string) client.Filters {
	f := client.Filters{}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		f.Add("label", k+"="+labels[k])
	}
	return f
}

// Networks returns the names of the networks with all the labels.
func (ho *hosting) Networks(ctx context.Context, labels map[string]string) (names []string, err error) {
	cli, err := ho.e.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("list networks: %w", err)
	}
	res, err := cli.NetworkList(ctx, client.NetworkListOptions{Filters: filters(labels)})
	for i := range res.Items {
		names = append(names, res.Items[i].Name)
	}
	return names, ho.e.fail(ctx, cli, "list networks", err)
}

// Volumes returns the names of the volumes with all the labels.
func (ho *hosting) Volumes(ctx context.Context, labels map[string]string) (names []string, err error) {
	cli, err := ho.e.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	res, err := cli.VolumeList(ctx, client.VolumeListOptions{Filters: filters(labels)})
	for i := range res.Items {
		names = append(names, res.Items[i].Name)
	}
	return names, ho.e.fail(ctx, cli, "list volumes", err)
}

// Look asks the engine for a container's state.
func (ho *hosting) Look(ctx context.Context, id string) (containers.Look, error) {
	c, _, err := ho.e.inspect(ctx, "look at container "+short(id), id)
	if err != nil {
		return containers.Look{}, err
	}
	l := containers.Look{State: state(c.State.Status), Code: c.State.ExitCode, Error: containers.CleanMessage(c.State.Error), Restarts: c.RestartCount}
	l.Started, _ = time.Parse(time.RFC3339Nano, c.State.StartedAt)
	if c.State.Health != nil && c.State.Health.Status != container.NoHealthcheck {
		l.Health = string(c.State.Health.Status)
	}
	if c.NetworkSettings == nil {
		return l, nil
	}
	for port, there := range c.NetworkSettings.Ports {
		for _, b := range there {
			p := option.Port{Port: int(port.Num()), Protocol: string(port.Proto())}
			_, _ = fmt.Sscan(b.HostPort, &p.Host)
			l.Ports = append(l.Ports, p)
		}
	}
	slices.SortFunc(l.Ports, option.ComparePorts)
	return l, nil
}

// Halt stops a container, and waits for it.
func (ho *hosting) Halt(ctx context.Context, id string, grace time.Duration) error {
	seconds := int((grace + time.Second - 1) / time.Second)
	return ho.e.gone(ctx, "stop container "+short(id), func(cli *client.Client) error {
		_, err := cli.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds})
		return err
	})
}
