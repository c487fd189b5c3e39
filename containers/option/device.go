package option

import (
	"fmt"
	"path"
	"strings"

	"carma/internal/lazyregexp"
)

// Device is a host device that a container gets. In a submission it can also be
// a folder of devices.
type Device struct {
	Source, Target string
	Permissions    string // some of r, w and m
}

// String returns the text of the option, as [ParseDevice] reads it.
func (d Device) String() string {
	text := d.Source
	if d.Target != d.Source || d.Permissions != "rwm" {
		text += ":" + d.Target
	}
	if d.Permissions != "rwm" {
		text += ":" + d.Permissions
	}
	return text
}

var permissions = lazyregexp.New(`^(r?w?m?)$`)

// ParseDevice parses PATH[:PATH][:rwm] as docker run does. The default path in the
// container is the same path.
func ParseDevice(text string) (d Device, err error) {
	parts := strings.Split(text, ":")
	d.Source, d.Permissions = parts[0], "rwm"
	d.Target = d.Source
	switch {
	case len(parts) == 2 && permissions().MatchString(parts[1]) && parts[1] != "":
		d.Permissions = parts[1]
	case len(parts) >= 2:
		d.Target = parts[1]
	}
	if len(parts) == 3 {
		d.Permissions = parts[2]
	}
	if strings.Contains(d.Source, "=") {
		return d, fmt.Errorf("%q: carma gives a task its GPUs, and their devices with them; see --gpus", text)
	}
	for _, p := range []string{d.Source, d.Target} {
		if !strings.HasPrefix(p, "/dev/") || path.Clean(p) != p || strings.ContainsAny(p, "\x00\n") {
			return d, fmt.Errorf("%q: %q is not a path below /dev; write for example /dev/infiniband/uverbs0", text, p)
		}
	}
	if len(parts) > 3 || !permissions().MatchString(d.Permissions) || d.Permissions == "" {
		return d, fmt.Errorf("%q: permissions are r, w and m, in this order; write for example %s:%s:rw", text, d.Source, d.Target)
	}
	return d, nil
}
