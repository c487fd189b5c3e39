package api

import (
	"fmt"
	"slices"
	"strings"

	"carma/mapper/units"
)

// AllGPUs as a number of GPUs stands for all of the machine.
const AllGPUs = -1

// GPURequest is the value of docker run's --gpus.
type GPURequest struct {
	Count        int64    // AllGPUs: all; 0: none
	Devices      []string // that were named, each once; none: carma chooses
	Capabilities []string // of the driver
}

// ParseGPUs reads all, a number, or docker's list of count=, device=, capabilities=
// and driver=, with or without its quotes.
func ParseGPUs(text string) (g GPURequest, err error) {
	key, counted := "", false
	for i, word := range strings.Split(strings.NewReplacer(`"`, "", `'`, "").Replace(text), ",") {
		k, value, keyed := strings.Cut(word, "=")
		switch {
		case keyed:
			key = k
		case i == 0:
			key, value = "count", word
		default:
			value = word // one more of the last key
		}
		switch key {
		case "count":
			counted = true
			if value == "all" || value == "-1" {
				g.Count = AllGPUs
			} else if g.Count, err = units.ParseCount(value, 0); err != nil {
				return g, err
			}
		case "device":
			if !slices.Contains(g.Devices, value) {
				g.Devices = append(g.Devices, value)
			}
		case "capabilities":
			g.Capabilities = append(g.Capabilities, value)
		case "driver":
			if value != "nvidia" && value != "" {
				return g, fmt.Errorf("%q: driver %s; carma gives NVIDIA's GPUs", text, value)
			}
		default:
			return g, fmt.Errorf("%q: unknown key %q; write for example 2, all or count=2", text, key)
		}
	}
	switch {
	case counted && g.Devices != nil:
		return g, fmt.Errorf("%q: a count and devices; leave one of them out", text)
	case slices.Contains(g.Devices, "all"):
		g.Count, g.Devices = AllGPUs, nil
	case g.Devices != nil:
		g.Count = int64(len(g.Devices))
	case !counted:
		g.Count = 1
	}
	return g, nil
}

// Notes are lines about what carma does otherwise than docker.
func (g GPURequest) Notes() (notes []string) {
	var more []string
	for _, c := range g.Capabilities {
		if !slices.Contains([]string{"gpu", "nvidia", "compute", "utility"}, c) {
			more = append(more, c)
		}
	}
	if more != nil {
		notes = append(notes, "the driver's capability "+strings.Join(more, ", ")+" is the engine's to give; NVIDIA_DRIVER_CAPABILITIES in the image asks for it")
	}
	return notes
}
