package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// condition returns the state of a helper in a few words.
func condition(h *api.HelperState) string {
	text := h.State
	switch {
	case h.State == "exited" && h.ExitCode != nil:
		text = fmt.Sprintf("exited (%d)", *h.ExitCode)
	case h.Health != "":
		text += ", " + h.Health
	}
	if h.Restarts > 0 {
		text += ", restarted " + count(h.Restarts, "time")
	}
	if h.Error != "" {
		text += ": " + h.Error
	}
	return text
}

// at lists the addresses of ports after a word, or returns "" if there are none.
func at(ports []api.HelperPort, word string) string {
	var all []string
	for _, p := range ports {
		if p.Host == 0 {
			continue
		}
		text := fmt.Sprintf("127.0.0.1:%d", p.Host)
		if p.Host != p.Container {
			text += fmt.Sprintf(" (its %d)", p.Container)
		}
		if p.Protocol == "udp" {
			text += "/udp"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return word + strings.Join(all, ", ")
}

// roomForBooked is the least width at which a table of helpers shows allocations.
const roomForBooked = 100

// helperTable shows the helpers of a suite: their limits and, in a wide table, the
// resources allocated to them.
func helperTable(s *api.SuiteState, now time.Time, width int) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "HELPER", Least: 8, Share: 2}, {Title: "IMAGE", Least: 8, Share: 2}, {Title: "STATE", Least: 10, Share: 2},
		{Title: "UP", Right: true}, {Title: "MEM", Right: true}, {Title: "CPUS", Right: true}, {Title: "ADDRESS", Least: 8, Share: 2},
	}}
	wide, place := width == 0 || width >= roomForBooked, 6
	if wide {
		t.Columns = slices.Insert(t.Columns, place, cli.Column{Title: "MEM-BOOKED", Right: true}, cli.Column{Title: "CPUS-BOOKED", Right: true})
	}
	for i := range s.Helpers {
		h := &s.Helpers[i]
		up, cpus := "-", "-"
		if h.State == "running" && !h.Started.IsZero() {
			up = cli.Age(now.Sub(h.Started))
		}
		if h.CPUs > 0 {
			cpus = fmt.Sprintf("%g", h.CPUs)
		}
		cells := []string{h.Name, h.Image, condition(h), up, cli.GiB(h.HostMem), cpus, at(h.Ports, "")}
		if wide {
			booked := "-"
			if h.CPUsReserve > 0 {
				booked = fmt.Sprintf("%g", h.CPUsReserve)
			}
			cells = slices.Insert(cells, place, cli.GiB(h.HostReserve), booked)
		}
		t.Add(cells...)
	}
	return t
}

// planTable shows the helpers that a suite would have.
func planTable(around *api.Suite, name string) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "HELPER", Least: 8, Share: 2}, {Title: "IMAGE", Least: 8, Share: 2}, {Title: "COMMAND", Least: 10, Share: 2},
		{Title: "AFTER", Least: 5, Share: 1}, {Title: "RESTART"}, {Title: "ADDRESS", Least: 8, Share: 1}, {Title: "VOLUMES", Least: 7, Share: 1},
	}}
	for i := range around.Helpers {
		h := &around.Helpers[i]
		var after, ports, volumes []string
		for _, w := range h.Waits {
			after = append(after, w.Helper)
		}
		for _, p := range h.Ports {
			if p.Host == 0 {
				ports = append(ports, "127.0.0.1:?")
			} else {
				ports = append(ports, fmt.Sprintf("127.0.0.1:%d", p.Host))
			}
		}
		for _, v := range h.Volumes {
			if v.Volume != "" {
				volumes = append(volumes, v.Volume)
			}
		}
		restart := h.Restart
		if restart == "" {
			restart = "no"
		}
		full := name + "-" + h.Name
		if h.Replicas > 1 {
			full += fmt.Sprintf(" x%d", h.Replicas)
		}
		t.Add(full, h.Container.Image, strings.Join(h.Container.Command, " "), strings.Join(after, ","), restart, strings.Join(ports, ","), strings.Join(volumes, ","))
	}
	return t
}
