package api

import (
	"context"
	"os"
)

// NamespaceHeader is the header with the default namespace of tasks.
const NamespaceHeader = "Carma-Namespace"

// Me describes the caller as the daemon identified it.
type Me struct {
	User  string `json:"user"`
	UID   int    `json:"uid" doc:"of the daemon's machine; of a user of a cluster, a larger number that carma gives them"`
	Admin bool   `json:"admin"`
	// Cluster is set if the cluster identified the user, not the machine's kernel.
	Cluster   bool   `json:"cluster,omitempty" doc:"a user of the cluster, as their token tells"`
	Namespace string `json:"namespace,omitempty" doc:"of the tasks that name none; empty: a task must name one, or there are none"`
}

// UID returns the number that identifies the caller in the daemon.
func (c *Client) UID(ctx context.Context) (int, error) {
	if !c.remote {
		return os.Getuid(), nil
	}
	me, err := c.WhoAmI(ctx)
	return me.UID, err
}

// WhoAmI returns the caller as the daemon identified it.
func (c *Client) WhoAmI(ctx context.Context) (Me, error) { return GetMe.send(ctx, c, None{}) }
