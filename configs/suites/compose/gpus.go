package compose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/runner/api"
)

// gpus reads how many GPUs a service asks for, from either of the two places.
// carma decides which ones it gets.
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
	if len(requests) > 0 && (s.Submit.GPUs > 0 || s.Submit.NoGPU) {
		t.refuseAt(c.Name, Extension+" says how many GPUs as well; leave one of them out", keys...)
		return
	}
	for i, r := range requests {
		if why, of := notGPU(r); why != "" {
			line, key := t.itemAt(c.Name, keys, i, of)
			t.refuse(line, key, why)
			return
		}
		for _, note := range (api.GPURequest{Capabilities: r.Capabilities}).Notes() {
			line, key := t.itemAt(c.Name, keys, i, "capabilities")
			t.warn(line, key, note)
		}
		switch {
		case slices.ContainsFunc(r.IDs, isAll):
			s.AllGPUs = true
		case len(r.IDs) > 0:
			line, key := t.itemAt(c.Name, keys, i, "device_ids")
			ids := strings.ReplaceAll(strings.Join(r.IDs, ","), "nvidia.com/gpu=", "")
			t.warn(line, key, fmt.Sprintf("carma chooses the GPUs; instead of %s the task gets %d, whichever they are; in its place x-carma: {gpus: %q} takes these", ids, len(r.IDs), "device="+ids))
			s.Submit.GPUs += len(r.IDs)
		case r.Count < 0:
			s.AllGPUs = true
		case r.Count == 0:
			line, key := t.itemAt(c.Name, keys, i, "count")
			t.refuse(line, key, "a count of 0; x-carma: {gpus: 0} makes it a task without a GPU")
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
	t.visible(c, &s.Submit)
	switch line, key := t.at(c.Name); {
	case len(requests) > 0 || s.Submit.GPUs > 0 || s.Submit.NoGPU || saysMemory(&s.Submit):
	case slices.Contains(t.follows, c.Name):
		s.Submit.NoGPU = true
		t.say(line, key, "it reserves no GPU and waits for the end of a task, so it is a task without a GPU; x-carma: {gpus: 1} gives it one")
	default:
		t.warn(line, key, "it reserves no GPU, but a task has one unless it says x-carma: {gpus: 0}: it gets as many as the image's labels say, else a whole one; x-carma: {mem: 64M} lets it share")
	}
}

func saysMemory(r *api.Submit) bool { return r.Mem > 0 || r.EstModel != "" || r.Probe }

// visible reads how many GPUs the variable of NVIDIA's runtime names, where nothing
// else says it. carma decides which GPUs a task sees.
func (t *translator) visible(c types.ServiceConfig, r *api.Submit) {
	line, key := t.at(c.Name, "environment")
	if list, given := c.Environment["NVIDIA_VISIBLE_DEVICES"]; given {
		n := 0
		if list != nil && c.Runtime == "nvidia" && !asksForDevices(c) && r.GPUs == 0 && !r.NoGPU {
			n = listed(*list)
		}
		if r.GPUs = r.GPUs + n; n > 0 {
			t.say(line, key, fmt.Sprintf("NVIDIA_VISIBLE_DEVICES names %d GPUs; it gets as many, and carma chooses which", n))
		} else {
			t.warn(line, key, "carma sets NVIDIA_VISIBLE_DEVICES to the task's GPUs; gpus says how many")
		}
	}
	if _, given := c.Environment["CUDA_VISIBLE_DEVICES"]; given {
		t.say(line, key, "CUDA_VISIBLE_DEVICES counts the task's GPUs, from 0, not those of the machine")
	}
}

// listed is the number of GPUs in a list of indices or UUIDs; 0: it is another word.
func listed(text string) (n int) {
	for id := range strings.SplitSeq(text, ",") {
		if _, err := strconv.Atoi(id); err != nil && !strings.HasPrefix(id, "GPU-") && !strings.HasPrefix(id, "MIG-") {
			return 0
		}
		n++
	}
	return n
}

// itemAt is the line of a key in the i-th entry of a list, and the full path of
// the key.
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

// notGPU tells why carma cannot fulfil a request, and by which key; empty: it
// can.
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
