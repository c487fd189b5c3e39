package containerd

import (
	"context"
	"errors"
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

// errNoInit means that carma-init is missing.
var errNoInit = errors.New("--init and -i: carma-init is not there; it belongs beside carma (make build)")

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
		if m.Driver.opts.Init == "" {
			return errNoInit
		}
		show(m.Driver.opts.Init, initTarget)
	}
	if talk == logfile.TalkInput {
		show(relay.InputPath(m.dir), inputTarget)
	}
	return nil
}
