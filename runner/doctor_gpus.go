package runner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"carma/runner/api"
	"carma/runner/gpu"
)

// checkHealth tells what is wrong with real GPUs, and with how they are read.
func (r *Runner) checkHealth() api.Check {
	c := api.Check{Name: "GPU health", Status: "ok", Detail: "no faults"}
	var faults, warnings []string
	for _, d := range r.ordered() {
		s, _ := r.monitor.reading(d.UUID)
		if s.Fault != "" {
			faults = append(faults, fmt.Sprintf("GPU %d: %s", d.Index, s.Fault))
		}
		for _, w := range s.Warnings {
			warnings = append(warnings, fmt.Sprintf("GPU %d: %s", d.Index, w))
		}
	}
	if n, ok := r.GPUs.(gpu.Noting); ok {
		warnings = append(warnings, n.Notes()...)
	}
	switch {
	case len(faults) > 0:
		c.Status, c.Detail = "failure", strings.Join(slices.Concat(faults, warnings), "; ")
		c.Mend = "see what each says; a GPU with a fault gets no tasks"
	case len(warnings) > 0:
		c.Status, c.Detail, c.Mend = "warning", strings.Join(warnings, "; "), "nvidia-smi -q tells more"
	}
	return c
}

// checkMetrics tells where the activity of real GPUs comes from.
func (r *Runner) checkMetrics() api.Check {
	c := api.Check{Name: "GPU activity", Status: "ok"}
	on := map[string][]string{}
	var sources []string
	coarse := false
	for _, d := range r.ordered() {
		s, ok := r.monitor.reading(d.UUID)
		name := cmp.Or(s.Metrics, "nothing")
		if !ok {
			name = "nothing yet"
		}
		if on[name] == nil {
			sources = append(sources, name)
		}
		on[name] = append(on[name], fmt.Sprint(d.Index))
		coarse = coarse || s.Coarse
	}
	var parts []string
	for _, name := range sources {
		parts = append(parts, fmt.Sprintf("from %s on GPU %s", name, strings.Join(on[name], ", ")))
	}
	c.Detail = strings.Join(parts, "; ")
	if coarse {
		c.Status, c.Detail = "warning", c.Detail+": the share of time any kernel runs, not how busy the SMs are"
		c.Mend = "run NVIDIA's dcgm-exporter and name its page: carma daemon --dcgm-exporter http://localhost:9400/metrics"
	}
	return c
}

// ordered are the GPUs by index.
func (r *Runner) ordered() []gpu.Device {
	var out []gpu.Device
	for _, d := range r.found {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b gpu.Device) int { return cmp.Compare(a.Index, b.Index) })
	return out
}
