package compose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/runner/api"
)

// gpuAsk is a service's request for GPUs, combined from all its forms.
type gpuAsk struct {
	// asks is set if the service requests GPUs, none if it explicitly requests no GPUs.
	asks, none bool
	// all is set if the service requests all GPUs. Otherwise count is the requested number,
	// or 0 if not given.
	all   bool
	count int
	// keys is the path of the request. requests contains its entries if it is a list.
	keys     []string
	requests []types.DeviceRequest
	// twice is set if the service has requests both in gpus and in reservations.devices.
	twice bool
	// looks is the sign that a service without a request uses GPUs, or empty.
	looks string
}

// isNVIDIA reports whether NVIDIA's toolkit installs a runtime of this name.
func isNVIDIA(runtime string) bool {
	return slices.Contains([]string{"nvidia", "nvidia-cdi", "nvidia-legacy", "nvidia-container-runtime"}, runtime)
}

// Names of the environment of NVIDIA's container runtime.
const visibleDevices = "NVIDIA_VISIBLE_DEVICES"

// gpusOf returns a service's request: from gpus, reservations, devices, or, if these
// request nothing, from NVIDIA's runtime and its variable.
func gpusOf(c types.ServiceConfig) gpuAsk {
	a := gpuAsk{requests: c.Gpus, keys: []string{"gpus"}}
	if d := c.Deploy; d != nil && d.Resources.Reservations != nil && len(d.Resources.Reservations.Devices) > 0 {
		a.twice = len(a.requests) > 0
		a.requests, a.keys = d.Resources.Reservations.Devices, []string{"deploy", "resources", "reservations", "devices"}
	}
	if len(a.requests) > 0 {
		a.asks = true
		return a
	}
	for _, d := range c.Devices {
		switch name, is := gpuDevice(d.Source); {
		case !is:
		case isAll(name):
			a.asks, a.all, a.keys = true, true, []string{"devices"}
		default:
			a.asks, a.keys = true, []string{"devices"}
			if name != "" {
				a.count++
			}
		}
	}
	if a.asks {
		return a
	}
	list, given := c.Environment[visibleDevices]
	text := ""
	if list != nil {
		text = strings.TrimSpace(*list)
	}
	a.keys = []string{"runtime"}
	n := listed(text)
	switch {
	case given && (text == "" && list != nil || text == "none" || text == "void"):
		a.none = true
	case !isNVIDIA(c.Runtime):
		if given && (n > 0 || isAll(text)) {
			a.looks = visibleDevices + "=" + text
		}
	default:
		a.asks, a.all, a.count = true, isAll(text), n
	}
	return a
}

// gpuDevice reports whether a device is a GPU's, by its node or its CDI name. name is its
// index or UUID, or "" for nodes that all GPUs share.
func gpuDevice(source string) (name string, is bool) {
	if name, is := strings.CutPrefix(source, "nvidia.com/gpu="); is {
		return name, true
	}
	name, is = strings.CutPrefix(source, "/dev/nvidia")
	if !is {
		return "", false
	}
	if _, err := strconv.Atoi(name); err != nil {
		name = ""
	}
	return name, true
}

// gpus reads the number of GPUs that a service requests. carma selects the GPUs.
func (t *translator) gpus(c types.ServiceConfig, s *Service) {
	if d := c.Deploy; d != nil && d.Mode != "" && d.Mode != "replicated" && d.Mode != "replicated-job" {
		t.refuseAt(c.Name, d.Mode+" is for a swarm; replicas is how many tasks there are", "deploy", "mode")
	}
	a := gpusOf(c)
	own := s.Submit.GPUs > 0 || s.Submit.NoGPU
	switch {
	case a.twice:
		t.refuseAt(c.Name, "deploy.resources.reservations.devices asks for GPUs as well; leave one of them out", "gpus")
		return
	case len(a.requests) > 0 && own:
		t.refuseAt(c.Name, Extension+" says how many GPUs as well; leave one of them out", a.keys...)
		return
	case len(a.requests) > 0:
		if !t.requested(c, s, &a) {
			return
		}
	case !own && a.none:
		s.Submit.NoGPU = true
	case !own:
		s.AllGPUs, s.Submit.GPUs = a.all, min(a.count, maxGPUs)
	}
	if s.AllGPUs {
		s.Submit.GPUs = 0
	}
	t.visible(c, &a, own)
	t.unsaid(c, s, &a)
}

// maxGPUs is the largest number of GPUs of one task.
const maxGPUs = 1024

// requested reads a list of device requests. It returns false for a refused list.
func (t *translator) requested(c types.ServiceConfig, s *Service, a *gpuAsk) bool {
	for i, r := range a.requests {
		if why, of := notGPU(r); why != "" {
			line, key := t.itemAt(c.Name, a.keys, i, of)
			t.refuse(line, key, why)
			return false
		}
		for _, note := range (api.GPURequest{Capabilities: r.Capabilities}).Notes() {
			line, key := t.itemAt(c.Name, a.keys, i, "capabilities")
			t.warn(line, key, note)
		}
		switch {
		case slices.ContainsFunc(r.IDs, isAll):
			s.AllGPUs = true
		case len(r.IDs) > 0:
			line, key := t.itemAt(c.Name, a.keys, i, "device_ids")
			ids := strings.ReplaceAll(strings.Join(r.IDs, ","), "nvidia.com/gpu=", "")
			n := strings.Count(ids, ",") + 1 // engines also read "0,1" as two devices
			t.warn(line, key, fmt.Sprintf("carma chooses the GPUs; instead of %s the task gets %d, whichever they are; in its place x-carma: {gpus: %q} takes these", ids, n, "device="+ids))
			s.Submit.GPUs += n
		case r.Count < 0:
			s.AllGPUs = true
		case r.Count == 0:
			line, key := t.itemAt(c.Name, a.keys, i, "count")
			t.refuse(line, key, "a count of 0; x-carma: {gpus: 0} makes it a task without a GPU")
		case r.Count > maxGPUs:
			line, key := t.itemAt(c.Name, a.keys, i, "count")
			t.refuse(line, key, fmt.Sprintf("%d GPUs; %d are the most that are taken", r.Count, maxGPUs))
		default:
			s.Submit.GPUs += int(r.Count)
		}
	}
	return true
}

// visible warns of devices and variables that select GPUs. own is set if x-carma gives
// the number of GPUs.
func (t *translator) visible(c types.ServiceConfig, a *gpuAsk, own bool) {
	line, key := t.at(c.Name, "environment")
	if _, given := c.Environment[visibleDevices]; given && !a.none {
		switch named := a.keys[0] == "runtime" && !own; {
		case named && a.all:
			t.say(line, key, "NVIDIA_VISIBLE_DEVICES="+strings.TrimSpace(*c.Environment[visibleDevices])+": it gets all GPUs of the machine")
		case named && a.count > 0:
			t.say(line, key, fmt.Sprintf("GPUs that NVIDIA_VISIBLE_DEVICES names: %d; it gets as many, and carma chooses which", a.count))
		default:
			t.warn(line, key, "carma sets NVIDIA_VISIBLE_DEVICES to the task's GPUs; gpus says how many")
		}
	}
	if a.keys[0] == "devices" {
		line, key := t.at(c.Name, "devices")
		what := "it gets them by its number of GPUs"
		switch {
		case a.all && !own:
			what += ", all"
		case a.count > 0 && !own:
			what += fmt.Sprintf(", %d, and carma chooses which", a.count)
		}
		t.say(line, key, "devices of NVIDIA's GPUs are not passed on: "+what)
	}
	if _, given := c.Environment["CUDA_VISIBLE_DEVICES"]; given {
		t.say(line, key, "CUDA_VISIBLE_DEVICES counts the task's GPUs, from 0, not those of the machine")
	}
}

// unsaid warns about the number of GPUs that a task gets if it requests no number.
func (t *translator) unsaid(c types.ServiceConfig, s *Service, a *gpuAsk) {
	line, key := t.at(c.Name)
	const many = "it gets as many as its command or the image's labels say, else "
	switch {
	case s.AllGPUs || s.Submit.GPUs > 0 || s.Submit.NoGPU && !slices.Contains(t.follows, c.Name):
	case saysMemory(&s.Submit):
	case a.asks:
		line, key = t.at(c.Name, a.keys...)
		t.say(line, key, "it says no number of GPUs; "+many+"one; gpus: all, or gpus: [{count: 2}], says how many")
	case slices.Contains(t.follows, c.Name):
		s.Submit.NoGPU = true
		t.say(line, key, "it reserves no GPU and waits for the end of a task, so it is a task without a GPU; x-carma: {gpus: 1} gives it one")
	default:
		t.warn(line, key, "it reserves no GPU, but a task has one unless it says x-carma: {gpus: 0}: "+many+"a whole one; x-carma: {mem: 64M} lets it share")
	}
}

func saysMemory(r *api.Submit) bool { return r.Mem > 0 || r.EstModel != "" || r.Probe }

// listed returns the number of GPUs in a list of indices, UUIDs, MIG devices as 0:1, or
// CDI's names, or 0 for any other word.
func listed(text string) (n int) {
	for id := range strings.SplitSeq(text, ",") {
		id, slice, mig := strings.Cut(strings.TrimPrefix(id, "nvidia.com/gpu="), ":")
		if _, err := strconv.Atoi(slice); mig && err != nil {
			return 0
		}
		if _, err := strconv.Atoi(id); err != nil && !strings.HasPrefix(id, "GPU-") && !strings.HasPrefix(id, "MIG-") {
			return 0
		}
		n++
	}
	return n
}

// itemAt returns the line and the full path of a key in the i-th entry of a list.
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

// notGPU returns the reason why carma cannot fulfil a request, and the key, or "" if
// carma can.
func notGPU(r types.DeviceRequest) (why, key string) {
	switch {
	case r.Driver != "" && r.Driver != "nvidia" && r.Driver != "cdi":
		return fmt.Sprintf("%q is another driver; carma gives NVIDIA GPUs", r.Driver), "driver"
	case r.Driver == "cdi" && !slices.ContainsFunc(r.IDs, isGPU):
		return "cdi without a device nvidia.com/gpu=...", "driver"
	case r.Driver == "" && len(r.Capabilities) > 0 && !slices.ContainsFunc(r.Capabilities, isCapability):
		return fmt.Sprintf("[%s] without gpu; carma gives GPUs", strings.Join(r.Capabilities, ", ")), "capabilities"
	}
	return "", ""
}

// isCapability reports whether this capability makes Docker select NVIDIA's driver.
func isCapability(name string) bool {
	return slices.Contains([]string{"gpu", "nvidia", "compute", "compat32", "graphics", "utility", "video", "display", "ngx"}, name)
}

func isGPU(id string) bool { return strings.HasPrefix(id, "nvidia.com/gpu=") }

func isAll(id string) bool { return strings.EqualFold(id[strings.LastIndexByte(id, '=')+1:], "all") }
