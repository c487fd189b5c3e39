package doctor

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
)

// checkHealth reports faults of real GPUs, and warnings about them and about
// reading them.
func (d *Doctor) checkHealth(gpus []GPU) api.Check {
	c := api.Check{Name: "GPU health", Status: "ok", Detail: "no faults"}
	var faults, warnings []string
	for _, on := range gpus {
		s := on.Reading
		if s.Fault != "" {
			faults = append(faults, fmt.Sprintf("GPU %d: %s", on.Index, s.Fault))
		}
		for _, w := range s.Warnings {
			warnings = append(warnings, fmt.Sprintf("GPU %d: %s", on.Index, w))
		}
	}
	if n, ok := d.Source.(gpu.Noting); ok {
		warnings = append(warnings, n.Notes()...)
	}
	switch {
	case len(faults) > 0:
		c.Status, c.Detail = "failure", strings.Join(slices.Concat(faults, warnings), "; ")
		c.Fix = "see what each says; a GPU with a fault gets no tasks. If it was reset and carma has not noticed: carma undrain GPU"
	case len(warnings) > 0:
		c.Status, c.Detail, c.Fix = "warning", strings.Join(warnings, "; "), "nvidia-smi -q tells more"
	}
	return c
}

// checkActivity reports the source of each GPU's activity.
func checkActivity(gpus []GPU) api.Check {
	c := api.Check{Name: "GPU activity", Status: "ok"}
	on := map[string][]string{}
	var sources []string
	var coarse []gpu.Device
	for _, of := range gpus {
		s := of.Reading
		name := cmp.Or(s.Metrics, "nothing")
		if !of.Read {
			name = "nothing yet"
		}
		if on[name] == nil {
			sources = append(sources, name)
		}
		on[name] = append(on[name], fmt.Sprint(of.Index))
		if s.Coarse {
			coarse = append(coarse, of.Device)
		}
	}
	var parts []string
	for _, name := range sources {
		parts = append(parts, fmt.Sprintf("from %s on GPU %s", name, strings.Join(on[name], ", ")))
	}
	c.Detail = strings.Join(parts, "; ")
	if len(coarse) == 0 {
		return c
	}
	c.Detail += ": the share of time any kernel runs, not how busy the SMs are"
	if !slices.ContainsFunc(coarse, func(d gpu.Device) bool { return !noCounters(d.Model) }) {
		c.Detail += "; these cards tell no more. carma takes it as a bound"
		return c
	}
	c.Status, c.Fix = "warning", "run NVIDIA's dcgm-exporter and name its page: carma daemon --dcgm-exporter http://localhost:9400/metrics"
	return c
}

// noCounters reports whether a card has no performance counters that a
// dcgm-exporter could show: GeForce cards before Blackwell (RTX 50) have none.
func noCounters(model string) bool {
	return strings.Contains(model, "GeForce") && !strings.Contains(model, "RTX 50")
}

// checkControlGroups reports the version of the kernel's control groups. They identify the
// task of a GPU process, and the driver's memory limits need version 2.
func checkControlGroups() api.Check {
	c := api.Check{Name: "control groups", Status: "ok", Detail: "version 2"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		c.Detail = "version 1: the driver cannot limit the GPU memory of containers"
	}
	if !cgroup.SeesHost("/") {
		c.Status, c.Detail = "warning", c.Detail+"; carma runs in a PID namespace of its own and cannot tell its tasks' GPU processes from others"
		c.Fix = "run carma in the host's PID namespace"
	}
	return c
}

// checkLimits reports for each GPU how the memory of tasks is limited, and why a stricter
// limit is not used.
func checkLimits(gpus []GPU) api.Check {
	c := api.Check{Name: "GPU memory limits", Status: "ok"}
	on := map[string][]string{}
	var texts []string
	for _, d := range gpus {
		text := d.Limits
		if on[text] == nil {
			texts = append(texts, text)
		}
		on[text] = append(on[text], fmt.Sprint(d.Index))
		if d.Unlimited {
			c.Status, c.Fix = "warning", "write memory-caps: growth and watchdog: relaunch, their defaults"
		}
	}
	var parts []string
	for _, text := range texts {
		parts = append(parts, fmt.Sprintf("GPU %s: %s", strings.Join(on[text], ", "), text))
	}
	c.Detail = strings.Join(parts, "; ")
	return c
}

// checkSuspend reports for each GPU whether tasks can be suspended there, and why not. The
// check does not fail if they cannot, because nothing else depends on suspending tasks.
func checkSuspend(gpus []GPU) api.Check {
	c := api.Check{Name: "suspending tasks", Status: "ok"}
	on := map[string][]string{}
	var texts []string
	for _, d := range gpus {
		text := d.Suspend
		c.Fix = cmp.Or(c.Fix, d.SuspendFix)
		if on[text] == nil {
			texts = append(texts, text)
		}
		on[text] = append(on[text], fmt.Sprint(d.Index))
	}
	var parts []string
	for _, text := range texts {
		parts = append(parts, "GPU "+strings.Join(on[text], ", ")+": "+text)
	}
	c.Detail = strings.Join(parts, "; ")
	return c
}
