package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

// Host is the machine's memory and processors, with the allocations of tasks and of suites'
// helpers. Memory is in bytes.
type Host struct {
	Total      int64        `json:"total" doc:"memory of the machine"`
	Memory     int64        `json:"memory" doc:"memory that all tasks together may book"`
	Booked     int64        `json:"booked" doc:"memory booked by tasks and helpers"`
	Away       int64        `json:"away,omitempty" doc:"the part of booked that holds what suspended tasks had on GPUs"`
	Used       int64        `json:"used" doc:"memory in use by tasks, without page cache"`
	Available  int64        `json:"available,omitempty" doc:"memory that can be had without swapping; 0: not known"`
	CPUs       float64      `json:"cpus" doc:"processors that all tasks together may book"`
	CPUsBooked float64      `json:"cpus_booked"`
	Tasks      []HostMember `json:"tasks"`
	// Helpers lists the helpers of suites. The sums include them, but Used does not.
	Helpers []HostHelpers `json:"helpers,omitempty"`
}

// HostHelpers is the share of the machine allocated to the helpers of a suite.
type HostHelpers struct {
	Suite  string  `json:"suite"`
	User   string  `json:"user"`
	Memory int64   `json:"memory" doc:"booked"`
	Used   int64   `json:"used"`
	CPUs   float64 `json:"cpus,omitempty" doc:"booked"`
}

// HostMember is the share of the machine allocated to one task.
type HostMember struct {
	Task   int64   `json:"task"`
	Name   string  `json:"name"`
	Memory int64   `json:"memory" doc:"booked"`
	Away   int64   `json:"away,omitempty" doc:"booked for what it had on GPUs"`
	Used   int64   `json:"used"`
	CPUs   float64 `json:"cpus,omitempty" doc:"booked"`
}

// GPURef names a GPU.
type GPURef struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"`
}

// GPU is the ledger's entry for one GPU. Memory is in bytes.
type GPU struct {
	GPURef
	Model    string  `json:"model"`
	Capacity int64   `json:"capacity"`
	Reserved int64   `json:"reserved" doc:"sum of the grants of the tasks placed there"`
	Used     int64   `json:"used"`
	Foreign  int64   `json:"foreign" doc:"in use by processes that are not carma's"`
	Headroom int64   `json:"headroom" doc:"never booked"`
	SMACT    float64 `json:"smact" doc:"SM activity, 0 to 1"`
	SMOCC    float64 `json:"smocc"`
	DRAMA    float64 `json:"drama"`
	PowerW   float64 `json:"power_w"`
	EnergyJ  float64 `json:"energy_j"`
	Sharing  string  `json:"sharing" doc:"how tasks share it: mps, mps-user (each user's tasks by MPS, users in turns), time-slicing or alone"`
	Parent   string  `json:"parent,omitempty" doc:"UUID of the card that this MIG instance is a part of"`
	NVLink   string  `json:"nvlink,omitempty" doc:"the same for GPUs that NVLink joins; empty: none, or not known"`
	NUMANode string  `json:"numa_node,omitempty" doc:"empty: the machine has one only, or it is not known"`
	Metrics  string  `json:"metrics,omitempty" doc:"where smact, smocc and drama come from: gpm, dcgm-exporter, utilization or none; empty on simulated GPUs"`
	Coarse   bool    `json:"coarse,omitempty" doc:"they are bounds from the share of time any kernel ran"`

	TemperatureC float64       `json:"temperature_c,omitempty"`
	ECCErrors    uint64        `json:"ecc_errors,omitempty" doc:"uncorrectable memory errors since the driver was loaded"`
	Warnings     []string      `json:"warnings,omitempty"`
	Fault        string        `json:"fault,omitempty" doc:"why it gets no tasks"`
	FaultLasts   bool          `json:"fault_lasts,omitempty" doc:"the fault lasts until the GPU is reset, also over restarts of the daemon"`
	Reservations []Reservation `json:"reservations,omitempty" doc:"of it, or of memory on it, the earliest first"`
	// Closed is set while the GPU is drained.
	Closed *Closure `json:"closed,omitempty"`
	// HeldFor is the task for which this GPU is reserved, or 0.
	HeldFor int64 `json:"held_for,omitempty"`
	// Suspend is the way in which tasks on this GPU can be suspended.
	Suspend string `json:"suspend,omitempty" enum:"here,move" doc:"tasks on it can be suspended, and come back to it (here) or to others of its model too (move); absent: they cannot"`
	// Suspended lists the tasks that had this GPU when they were suspended.
	Suspended []Away     `json:"suspended,omitempty" doc:"tasks that had it when they were suspended"`
	Tasks     []Resident `json:"tasks"`
}

// Away is a task that was suspended on a GPU.
type Away struct {
	Task  int64     `json:"task"`
	Name  string    `json:"name"`
	Host  int64     `json:"host" doc:"bytes of host memory booked for what it had there"`
	Since time.Time `json:"since"`
}

// Resident is one task's place on a GPU. Memory is in bytes.
type Resident struct {
	Task  int64  `json:"task"`
	Name  string `json:"name"`
	Grant int64  `json:"grant"`
	Used  int64  `json:"used"`
	Peak  int64  `json:"peak"`
	Alone bool   `json:"alone,omitempty"`
}
