package api

import (
	"fmt"
	"slices"
	"strings"

	"carma/internal/lazyregexp"
	"carma/internal/units"
)

// AllGPUs as a number of GPUs means all GPUs of the machine.
const AllGPUs = -1

// GPURequest is the value of docker run's --gpus.
type GPURequest struct {
	Count        int64    // AllGPUs for all, or 0 for none
	Devices      []string // named GPUs, without duplicates; if empty, carma chooses
	Capabilities []string // of the driver
}

// ParseGPUs parses all, a number, UUIDs, or docker's list of count=, device=,
// capabilities= and driver=, with or without its quotes. Its errors contain the fix.
func ParseGPUs(text string) (g GPURequest, err error) {
	key, counted := "", false
	if instead := otherwise(strings.Trim(text, `"' `)); instead != "" {
		return g, fmt.Errorf("%q: %s", text, instead)
	}
	for i, word := range strings.Split(strings.NewReplacer(`"`, "", `'`, "").Replace(text), ",") {
		k, value, keyed := strings.Cut(word, "=")
		switch {
		case keyed:
			key = k
		case i == 0 && isUUID(word):
			key, value = "device", word
		case i == 0:
			key, value = "count", word
		default:
			value = word // another value of the last key
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

// Notes returns lines about differences from docker.
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

// isUUID reports whether a word names a GPU by its UUID.
func isUUID(word string) bool {
	return strings.HasPrefix(word, "GPU-") || strings.HasPrefix(word, "MIG-")
}

var (
	indexList   = lazyregexp.New(`^\d+(,\d+)+,?$`)
	partOfGPU   = lazyregexp.New(`^\d*\.\d+$`)
	ofOneModel  = lazyregexp.New(`^(?:(?:gpu|gres/gpu|gres:gpu|nvidia\.com/gpu)[:=])?(?:[A-Za-z][\w.-]*:|[A-Za-z]+\d[\w.-]*[=x])?(\d+)$`)
	modelAlone  = lazyregexp.New(`(?i)^(?:(?:nvidia|tesla|rtx|gtx|quadro)[ _-]?)*(?:[ahlvptb]\d{1,4}|gh200|gb200|titan|\d{4}(?:ti)?)[\w -]*$`)
	cdiDevice   = lazyregexp.New(`^nvidia\.com/gpu=([\w-]+)$`)
	countedWord = lazyregexp.New(`^(?:all|-1|\d+)$`)
)

// otherwise returns the replacement for another tool's syntax, or "".
func otherwise(text string) string {
	switch {
	case countedWord().MatchString(text):
		return ""
	case indexList().MatchString(text):
		list := strings.TrimRight(text, ",")
		return fmt.Sprintf("write device=%s for these GPUs, or %d for so many", list, strings.Count(list, ",")+1)
	case partOfGPU().MatchString(text):
		return "a task has whole GPUs by number and shares them by memory; write 1, and its part as --mem, for example --mem 10G"
	case text == "none":
		return "write 0"
	case cdiDevice().MatchString(text):
		if name := cdiDevice().FindStringSubmatch(text)[1]; name != "all" {
			return "write device=" + name
		}
		return "write all"
	case strings.HasPrefix(text, "count=") || strings.HasPrefix(text, "device="):
		return ""
	case ofOneModel().MatchString(text):
		n := ofOneModel().FindStringSubmatch(text)[1]
		return "carma does not choose GPUs by their model; write " + n + ", or device=0,1 for some of those that carma gpus lists"
	case modelAlone().MatchString(text):
		return "carma does not choose GPUs by their model; write 1, or device=0 for one of those that carma gpus lists"
	}
	return ""
}
