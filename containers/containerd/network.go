package containerd

import (
	"context"
	"fmt"

	cni "github.com/containerd/go-cni"
	"github.com/containernetworking/cni/libcni"
)

// network connects containers by CNI, as the machine configures it. Without a
// configuration a container has only its own loopback. A container never gets the host's
// network, because it could then reach services that listen only on loopback.
type network struct {
	name string // empty for the first one configured
	opts []cni.Opt
	conf string // CNI's folder of configurations
}

const noNetwork = "none"

func newNetwork(opts Options) (*network, error) {
	if opts.Network == "host" {
		return nil, fmt.Errorf("containerd network %q: tasks do not share another's network", opts.Network)
	}
	return &network{name: opts.Network, conf: opts.CNIConf, opts: []cni.Opt{
		cni.WithMinNetworkCount(1), cni.WithPluginConfDir(opts.CNIConf), cni.WithPluginDir([]string{opts.CNIBin, "/usr/lib/cni"}),
		cni.WithInterfacePrefix("eth"),
	}}, nil
}

// off reports whether containers get no network.
func (n *network) off() bool {
	if n.name != "" {
		return n.name == noNetwork
	}
	files, err := libcni.ConfFiles(n.conf, []string{".conf", ".conflist", ".json"})
	return err != nil || len(files) == 0
}

// notes returns warnings for the operator, a sentence each.
func (n *network) notes() []string {
	if n.name == "" && n.off() {
		return []string{"containers have no network but their loopback: no CNI network in " + n.conf}
	}
	return nil
}

// load reads the configuration again at each call, because it may have changed.
func (n *network) load() (cni.CNI, error) {
	c, err := cni.New(n.opts...)
	if err != nil {
		return nil, err
	}
	load := cni.Opt(cni.WithDefaultConf)
	if n.name != "" {
		list, err := libcni.LoadConfList(n.conf, n.name)
		if err != nil {
			return nil, fmt.Errorf("network %q in %s: %w", n.name, n.conf, err)
		}
		load = cni.WithConfListBytes(list.Bytes)
	}
	if err := c.Load(load); err != nil {
		return nil, fmt.Errorf("network in %s: %w", n.conf, err)
	}
	return c, nil
}

// join connects the container whose first process is pid.
func (n *network) join(ctx context.Context, id string, pid uint32) error {
	if n.off() {
		return nil
	}
	c, err := n.load()
	if err != nil {
		return err
	}
	_, err = c.Setup(ctx, id, fmt.Sprintf("/proc/%d/ns/net", pid))
	return err
}

// leave releases the container's address. Its interfaces are gone with the container.
func (n *network) leave(ctx context.Context, id string) error {
	if n.off() {
		return nil
	}
	c, err := n.load()
	if err != nil {
		return err
	}
	return c.Remove(ctx, id, "")
}
