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
	for _, r := range requests {
		if why := notGPU(r); why != "" {
			t.refuseAt(c.Name, why, keys...)
			return
		}
		if extra := otherThan(r.Capabilities, "gpu", "nvidia", "compute", "utility"); len(extra) > 0 {
			t.warnAt(c.Name, "the driver's capability "+strings.Join(extra, ", ")+" is the engine's to give; NVIDIA_DRIVER_CAPABILITIES in the image asks for it", keys...)
		}
		switch {
		case len(r.IDs) > 0:
			t.warnAt(c.Name, fmt.Sprintf("carma chooses the GPUs; %s counts as %d of them", strings.Join(r.IDs, ", "), len(r.IDs)), append(slices.Clone(keys), "device_ids")...)
			s.Submit.GPUs += len(r.IDs)
			s.AllGPUs = s.AllGPUs || slices.ContainsFunc(r.IDs, isAll)
		case r.Count < 0:
			s.AllGPUs = true
		case r.Count == 0:
			t.refuseAt(c.Name, "a count of 0; a task has at least one GPU", keys...)
		case r.Count > 1024:
			t.refuseAt(c.Name, fmt.Sprintf("%d GPUs; a machine has 16 at most", r.Count), keys...)
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

// notGPU is why a request is none that carma can fulfil.
func notGPU(r types.DeviceRequest) string {
	switch {
	case r.Driver != "" && r.Driver != "nvidia" && r.Driver != "cdi":
		return fmt.Sprintf("driver %q; carma gives NVIDIA GPUs", r.Driver)
	case r.Driver == "cdi" && !slices.ContainsFunc(r.IDs, isGPU):
		return "driver cdi without a device nvidia.com/gpu=..."
	case len(r.Capabilities) > 0 && !slices.Contains(r.Capabilities, "gpu") && !slices.Contains(r.Capabilities, "nvidia"):
		return fmt.Sprintf("capabilities [%s]; carma gives GPUs: [gpu]", strings.Join(r.Capabilities, ", "))
	}
	return ""
}

func isGPU(id string) bool { return strings.HasPrefix(id, "nvidia.com/gpu=") }

func isAll(id string) bool { return strings.EqualFold(id[strings.LastIndexByte(id, '=')+1:], "all") }

func otherThan(words []string, known ...string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(known, w) })
}
