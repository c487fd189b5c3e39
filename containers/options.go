package containers

import (
	"context"

	"carma/containers/option"
)

// Publisher is a driver that opens the ports of containers.
type Publisher interface {
	// CanPublish returns the reason why a port of this protocol cannot be opened here, or
	// nil if it can.
	CanPublish(protocol string) error
	// Ports returns the open ports of a running container, with the host port of each. If
	// the engine opens no ports, the driver opens them, and keeps them open until it is
	// closed or the container has ended. Ports may be called again, also by another process.
	Ports(ctx context.Context, id string) ([]option.Port, error)
}

// InitTarget is the path of carma-init in containers that have it.
const InitTarget = "/.carma/init"
