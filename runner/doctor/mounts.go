package doctor

import (
	"errors"
	"strings"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/mounts"
)

// checkMounts reports whether users may mount folders, and how their mounts are
// protected.
func (d *Doctor) checkMounts(f *Facts) api.Check {
	c := api.Check{Name: "mounts", Status: "warning"}
	near, kernel := f.Near, mounts.Supported()
	switch allowed := f.AllowedMounts; {
	case len(allowed) == 0:
		c.Status, c.Detail = "ok", "only root's tasks may mount folders (allowed-mounts is empty)"
	case kernel != nil:
		c.Detail = "users cannot mount folders: " + kernel.Error()
		c.Fix = "boot Linux 5.8 or newer; root's tasks can mount meanwhile"
	case d.MountDir == "":
		c.Detail = "other users cannot mount folders: " + mounts.ErrOthers.Error()
		c.Fix = "run the daemon as root"
	case errors.Is(near, containers.ErrUnavailable):
		c.Status, c.Detail = "ok", "users may mount below "+strings.Join(allowed, ", ")+"; whether the engine sees the same folders is checked when it answers"
	case errors.Is(near, containers.ErrRemote):
		c.Detail = "mounts of users are checked here and not held: the engine is elsewhere, so a user who swaps a path after the check can mount any folder"
		c.Fix = "use an engine of this machine (docker-host), or forbid mounts (allowed-mounts: []) where users are not trusted"
	case near != nil:
		c.Detail = "users cannot mount folders: " + near.Error()
		c.Fix = "run the daemon and the engine in the machine's own mount namespace: as units without these settings, and not in containers"
	default:
		c.Status, c.Detail = "ok", "users may mount below "+strings.Join(allowed, ", ")+"; what was checked is held in "+d.MountDir+" until its container has started"
	}
	return c
}
