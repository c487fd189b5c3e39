package docker

import (
	"fmt"
	"strings"

	"carma/containers"
)

var _ containers.Near = (*Driver)(nil)

// SameFiles returns nil if the engine sees the same file systems as this process.
func (d *Driver) SameFiles() error {
	host := d.conn.Load().cli.DaemonHost()
	if socket, ok := strings.CutPrefix(host, "unix://"); ok {
		return containers.SameMounts(socket)
	}
	return fmt.Errorf("%w: %s", containers.ErrRemote, host)
}
