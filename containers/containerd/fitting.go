package containerd

import (
	"context"
	"slices"
	"strconv"
	"strings"

	core "github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/opencontainers/runtime-spec/specs-go"

	"carma/containers"
	"carma/containers/containerd/logfile"
	"carma/containers/containerd/relay"
	"carma/containers/option"
)

const initTarget = containers.InitTarget

// inputTarget is the path of the pipe with a container's input.
const inputTarget = "/.carma/input"

// rlimits returns the limits of a container's processes: the limits that it requests,
// otherwise containerd's own, as with Docker. The library's default of 1024 files is too
// low.
func rlimits(list []option.Ulimit) (out []specs.POSIXRlimit) {
	for _, u := range list {
		out = append(out, specs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(u.Name), Soft: uint64(u.Soft), Hard: uint64(u.Hard)})
	}
	return out
}

// Supports returns all options, with limits: containers without a network have no ports,
// only ports of tcp can be opened, and some options need the program carma-init.
func (d *Driver) Supports() containers.Support {
	return containers.Support{
		"WorkDir": nil, "ShmSize": nil, "Pids": nil, "Ulimits": nil, "Tmpfs": nil, "IPC": nil,
		"Groups": nil, "Hostname": nil, "StopSignal": nil, "Devices": nil, "TTY": nil,
		"Ports": d.opts.noPorts, "Init": d.opts.noInit, "Interactive": d.opts.noInput,
	}
}

func (o *Options) noPorts(of *containers.ContainerOptions) string {
	if o.Network == noNetwork {
		return "the daemon gives tasks no network (network: none)"
	}
	for _, p := range option.Each(of.Ports, option.ParsePort) {
		if p.Protocol != "tcp" {
			return "only ports of tcp can be opened"
		}
	}
	return ""
}

func (o *Options) noInit(*containers.ContainerOptions) string {
	if o.Init == "" {
		return "carma-init is not there; it belongs beside carma (make build)"
	}
	return ""
}

// noInput is noInit for a program without a terminal. A terminal needs no carma-init.
func (o *Options) noInput(of *containers.ContainerOptions) string {
	if of.TTY {
		return ""
	}
	return o.noInit(of)
}

// fit gives the container its groups, devices and first process.
func (m *maker) fit(ctx context.Context, c oci.Client, container *core.Container, s *oci.Spec) error {
	for _, g := range option.Each(m.spec.Groups, strconv.Atoi) {
		if !slices.Contains(s.Process.User.AdditionalGids, uint32(g)) {
			s.Process.User.AdditionalGids = append(s.Process.User.AdditionalGids, uint32(g))
		}
	}
	for _, d := range option.Each(m.spec.Devices, option.ParseDevice) {
		if err := oci.WithDevices(d.Source, d.Target, d.Permissions)(ctx, c, container, s); err != nil {
			return err
		}
	}
	show := func(source, target string) {
		s.Mounts = append(s.Mounts, specs.Mount{Type: "bind", Source: source, Destination: target, Options: []string{"bind", "rprivate", "ro"}})
	}
	talk := talkOf(m.spec)
	if m.spec.Init || talk == logfile.TalkInput {
		show(m.Driver.opts.Init, initTarget)
	}
	if talk == logfile.TalkInput {
		show(relay.InputPath(m.dir), inputTarget)
	}
	return nil
}
