package docker

import (
	"context"
	"net"
	"strings"
	"sync"

	"github.com/moby/moby/client"

	"carma/containers"
)

// bridge is the containers' network bridge, as far as this process can see it.
type bridge struct {
	e       *engine
	network string // as in [Options]

	mu   sync.Mutex
	name string // empty if unknown
	seen bool   // the bridge has existed
}

// bridgeOption is the option of a network that names its bridge.
const bridgeOption = "com.docker.network.bridge.name"

// Check checks that the containers' bridge still exists. It reports only a bridge that it
// has seen before, because an engine may have its bridges in its own network namespace or
// on another machine.
func (b *bridge) Check(ctx context.Context) *containers.StartFault {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.name == "" && !b.findBridge(ctx) {
		return nil
	}
	if interfaceThere(b.name) {
		b.seen = true
		return nil
	}
	if !b.seen {
		return nil
	}
	// The engine may use another bridge by now.
	if old := b.name; b.findBridge(ctx) && b.name != old {
		return nil
	}
	return containers.ReadStartFault("could not find bridge " + b.name)
}

// findBridge asks the engine for the name of the bridge. The caller holds the
// lock.
func (b *bridge) findBridge(ctx context.Context) bool {
	if !strings.HasPrefix(b.e.Address(), "unix://") {
		return false
	}
	cli, err := b.e.client(ctx)
	if err != nil {
		return false
	}
	network := b.network
	if network == "" {
		network = "bridge"
	}
	res, err := cli.NetworkInspect(ctx, network, client.NetworkInspectOptions{})
	if err != nil || res.Network.Driver != "bridge" {
		return false
	}
	name := res.Network.Options[bridgeOption]
	if name == "" && len(res.Network.ID) >= 12 {
		name = "br-" + res.Network.ID[:12]
	}
	if name != b.name {
		b.name, b.seen = name, false
	}
	return true
}

// interfaceThere reports whether a network interface exists. It is a variable for tests.
var interfaceThere = func(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}
