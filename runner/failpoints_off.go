//go:build !failpoints

package runner

import "carma/containers"

// failing returns the engine's driver unchanged.
func failing(d containers.Driver) containers.Driver { return d }
