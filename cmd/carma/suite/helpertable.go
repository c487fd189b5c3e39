package suite

import (
	"fmt"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// condition is how a helper is, in a few words.
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

// at lists the addresses of ports behind a word; empty: there are none.
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

// helperTable shows the helpers of a suite.
func helperTable(s *api.SuiteState, now time.Time) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "HELPER", Least: 8, Share: 2}, {Title: "IMAGE", Least: 8, Share: 2}, {Title: "STATE", Least: 10, Share: 2},
		{Title: "UP", Right: true}, {Title: "MEM", Right: true}, {Title: "CPUS", Right: true}, {Title: "ADDRESS", Least: 8, Share: 2},
	}}
	for i := range s.Helpers {
		h := &s.Helpers[i]
		up, cpus := "-", "-"
		if h.State == "running" && !h.Started.IsZero() {
			up = cli.Age(now.Sub(h.Started))
		}
		if h.CPUs > 0 {
			cpus = fmt.Sprintf("%g", h.CPUs)
		}
		t.Add(h.Name, h.Image, condition(h), up, cli.GiB(h.HostMem), cpus, at(h.Ports, ""))
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
