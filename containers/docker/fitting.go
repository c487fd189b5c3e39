package docker

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"carma/containers"
	"carma/containers/option"
)

var _ containers.Publisher = (*Driver)(nil)

// fit applies settings that docker run has flags for.
func fit(h *container.HostConfig, spec containers.Spec) {
	for _, u := range option.Each(spec.Ulimits, option.ParseUlimit) {
		h.Ulimits = append(h.Ulimits, &units.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	h.GroupAdd = append(h.GroupAdd, spec.Groups...)
	for _, t := range option.Each(spec.Tmpfs, option.ParseTmpfs) {
		if h.Tmpfs == nil {
			h.Tmpfs = map[string]string{}
		}
		h.Tmpfs[t.Target] = strings.Join(t.Options(), ",")
	}
	for _, d := range option.Each(spec.Devices, option.ParseDevice) {
		h.Devices = append(h.Devices, container.DeviceMapping{PathOnHost: d.Source, PathInContainer: d.Target, CgroupPermissions: d.Permissions})
	}
	for _, p := range option.Each(spec.Ports, option.ParsePort) {
		if h.PortBindings == nil {
			h.PortBindings = network.PortMap{}
		}
		host := ""
		if p.Host > 0 {
			host = strconv.Itoa(p.Host)
		}
		h.PortBindings[portOf(p)] = append(h.PortBindings[portOf(p)], network.PortBinding{HostIP: loopback, HostPort: host})
	}
	if spec.Init {
		h.Init = &spec.Init
	}
}

// loopback is the only address on which ports are opened.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func portOf(p option.Port) network.Port {
	port, _ := network.PortFrom(uint16(p.Port), network.IPProtocol(p.Protocol))
	return port
}

// Supports returns all options, without ports if containers have no network.
func (d *Driver) Supports() containers.Support {
	return containers.Support{
		"WorkDir": nil, "ShmSize": nil, "Pids": nil, "Ulimits": nil, "Tmpfs": nil, "Init": nil, "IPC": nil,
		"Groups": nil, "Hostname": nil, "StopSignal": nil, "Devices": nil, "Interactive": nil, "TTY": nil,
		"Ports": d.opts.noPorts,
	}
}

func (o *Options) noPorts(*containers.ContainerOptions) string {
	if o.Network == "none" {
		return "the daemon gives tasks no network (network: none)"
	}
	return ""
}

// Ports asks the engine for the open ports of a container.
func (d *Driver) Ports(ctx context.Context, id string) ([]option.Port, error) {
	c, _, err := d.inspect(ctx, "ports of container "+short(id), id)
	if err != nil || c.NetworkSettings == nil {
		return nil, err
	}
	var open []option.Port
	for port, bindings := range c.NetworkSettings.Ports {
		for _, b := range bindings {
			if host, err := strconv.Atoi(b.HostPort); err == nil && b.HostIP == loopback {
				open = append(open, option.Port{Port: int(port.Num()), Protocol: string(port.Proto()), Host: host})
			}
		}
	}
	slices.SortFunc(open, option.ComparePorts)
	return open, nil
}
