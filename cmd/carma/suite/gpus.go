package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/runner/api"
)

// gpus reads how many GPUs a service asks for, in whichever of the two places.
// Which ones it gets is carma's to decide.
func (t *translator) gpus(c types.ServiceConfig, s *Service) {
	requests, keys := c.Gpus, []string{"gpus"}
	if d := c.Deploy; d != nil {
		if mode := d.Mode; mode != "" && mode != "replicated" && mode != "replicated-job" {
			t.refuseAt(c.Name, mode+" is for a swarm; replicas is how many tasks there are", "deploy", "mode")
		}
		if reserved := d.Resources.Reservations; reserved != nil && len(reserved.Devices) > 0 {
			if len(requests) > 0 {
				t.refuseAt(c.Name, "deploy.resources.reservations.devices asks for GPUs as well; leave one of them out", keys...)
				return
			}
			requests, keys = reserved.Devices, []string{"deploy", "resources", "reservations", "devices"}
		}
	}
	if len(requests) > 0 && s.Submit.GPUs > 0 {
		t.refuseAt(c.Name, Extension+" says how many GPUs as well; leave one of them out", keys...)
		return
	}
	for i, r := range requests {
		if why, of := notGPU(r); why != "" {
			line, key := t.itemAt(c.Name, keys, i, of)
			t.refuse(line, key, why)
			return
		}
		if extra := otherThan(r.Capabilities, "gpu", "nvidia", "compute", "utility"); len(extra) > 0 {
			line, key := t.itemAt(c.Name, keys, i, "capabilities")
			t.warn(line, key, "the driver's capability "+strings.Join(extra, ", ")+" is the engine's to give; NVIDIA_DRIVER_CAPABILITIES in the image asks for it")
		}
		switch {
		case slices.ContainsFunc(r.IDs, isAll):
			s.AllGPUs = true
		case len(r.IDs) > 0:
			line, key := t.itemAt(c.Name, keys, i, "device_ids")
			t.warn(line, key, fmt.Sprintf("carma chooses the GPUs; instead of %s the task gets %d, whichever they are", strings.Join(r.IDs, ", "), len(r.IDs)))
			s.Submit.GPUs += len(r.IDs)
		case r.Count < 0:
			s.AllGPUs = true
		case r.Count == 0:
			line, key := t.itemAt(c.Name, keys, i, "count")
			t.refuse(line, key, "a count of 0; a task has at least one GPU")
		case r.Count > 1024:
			line, key := t.itemAt(c.Name, keys, i, "count")
			t.refuse(line, key, fmt.Sprintf("%d GPUs; 1024 are the most that are taken", r.Count))
		default:
			s.Submit.GPUs += int(r.Count)
		}
	}
	if s.AllGPUs {
		s.Submit.GPUs = 0
	}
	if len(requests) == 0 && !saysMemory(&s.Submit) {
		line, key := t.at(c.Name)
		t.warn(line, key, "it reserves no GPU, and a task has at least one: it gets what the image's labels say, else a whole one; x-carma: {mem: 64M} lets it share")
	}
}

func saysMemory(r *api.Submit) bool { return r.Mem > 0 || r.EstModel != "" || r.Probe }

// itemAt is the line of a key of the i-th entry of a list, and the key with its
// place.
func (t *translator) itemAt(service string, keys []string, i int, below string) (int, string) {
	line, at := t.at(service, keys...)
	if list, _ := t.find(strings.Split(at, ".")...); list != nil && i < len(list.Content) {
		line = list.Content[i].Line
		if k, _ := get(list.Content[i], below); k != nil {
			return k.Line, at + "." + below
		}
	}
	return line, at
}

// notGPU is why a request is none that carma can fulfil, and by which key.
func notGPU(r types.DeviceRequest) (why, key string) {
	switch {
	case r.Driver != "" && r.Driver != "nvidia" && r.Driver != "cdi":
		return fmt.Sprintf("%q is another driver; carma gives NVIDIA GPUs", r.Driver), "driver"
	case r.Driver == "cdi" && !slices.ContainsFunc(r.IDs, isGPU):
		return "cdi without a device nvidia.com/gpu=...", "driver"
	case len(r.Capabilities) > 0 && !slices.Contains(r.Capabilities, "gpu") && !slices.Contains(r.Capabilities, "nvidia"):
		return fmt.Sprintf("[%s] without gpu; carma gives GPUs", strings.Join(r.Capabilities, ", ")), "capabilities"
	}
	return "", ""
}

func isGPU(id string) bool { return strings.HasPrefix(id, "nvidia.com/gpu=") }

func isAll(id string) bool { return strings.EqualFold(id[strings.LastIndexByte(id, '=')+1:], "all") }

func otherThan(words []string, known ...string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(known, w) })
}
