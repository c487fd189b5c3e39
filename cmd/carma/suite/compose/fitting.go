package compose

import (
	"fmt"
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/runner/api"
)

// fit reads the keys that mean the same as flags of docker run into the corresponding
// fields of a task.
func (t *translator) fit(c types.ServiceConfig, r *api.Submit) {
	set := func(key, field string, texts ...string) {
		f, known := api.FieldNamed(field)
		for _, text := range texts {
			if !known || text == "" {
				continue
			}
			if err := f.Set(r, text); err != nil {
				t.refuseAt(c.Name, err.Error(), key)
			}
		}
	}
	switch c.Ipc {
	case "", "private", "shareable":
		set("ipc", "ipc", c.Ipc)
	case "host":
		t.warnAt(c.Name, "a task has its own, and a /dev/shm of half of its memory; shm_size: 8g makes it larger. Where the daemon has mps-ipc: host, write x-carma: {ipc: host}", "ipc")
	default:
		t.refuseAt(c.Name, "a task has its own; only private is possible", "ipc")
	}
	set("stop_signal", "stop-signal", c.StopSignal)
	set("hostname", "hostname", c.Hostname)
	set("group_add", "group-add", c.GroupAdd...)
	set("tmpfs", "tmpfs", c.Tmpfs...)
	r.Init = c.Init != nil && *c.Init
	for _, name := range slices.Sorted(maps.Keys(c.Ulimits)) {
		u := c.Ulimits[name]
		text := fmt.Sprintf("%s=%d:%d", name, u.Soft, u.Hard)
		if u.Soft == 0 && u.Hard == 0 {
			text = fmt.Sprintf("%s=%d", name, u.Single)
		}
		set("ulimits", "ulimit", text)
	}
	for _, d := range c.Devices {
		if _, is := gpuDevice(d.Source); is {
			continue // gpus reads this key
		}
		text := d.Source
		if d.Target != "" {
			text += ":" + d.Target
		}
		if d.Permissions != "" {
			text += ":" + d.Permissions
		}
		set("devices", "device", text)
	}
	for _, p := range c.Ports {
		set("ports", "publish", portText(p))
	}
}

// portText formats a port like docker run's --publish.
func portText(p types.ServicePortConfig) string {
	text := fmt.Sprint(p.Target)
	switch {
	case p.HostIP != "":
		text = p.HostIP + ":" + p.Published + ":" + text
	case p.Published != "":
		text = p.Published + ":" + text
	}
	if p.Protocol != "" {
		text += "/" + p.Protocol
	}
	return text
}
