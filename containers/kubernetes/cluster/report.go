package cluster

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"carma/containers/kubernetes"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// Report is an agent's report of its node's GPUs.
type Report struct {
	// Boot is the id of the node's boot, or empty if unknown.
	Boot string
	GPUs []gpu.Sample
}

// wire is the published form of a report. It is short, because each report is written to the
// cluster's store. All processes of one attempt are one entry, and so are all foreign processes
// on a GPU: their number does not matter, and a node can have thousands.
type wire struct {
	Boot string    `json:"boot,omitempty"`
	GPUs []wireGPU `json:"gpus"`
}

type wireGPU struct {
	UUID     string      `json:"uuid"`
	Used     units.Bytes `json:"used,omitempty"`
	SMACT    float64     `json:"sm,omitempty"`
	SMOCC    float64     `json:"occ,omitempty"`
	DRAMA    float64     `json:"dram,omitempty"`
	Metrics  string      `json:"from,omitempty"`
	Coarse   bool        `json:"coarse,omitempty"`
	Celsius  float64     `json:"c,omitempty"`
	ECC      uint64      `json:"ecc,omitempty"`
	Watts    float64     `json:"w,omitempty"`
	Joules   float64     `json:"j,omitempty"`
	Counter  float64     `json:"counter,omitempty"`
	Programs []wireUse   `json:"p,omitempty"`
	Fault    string      `json:"fault,omitempty"`
	Lasts    bool        `json:"lasts,omitempty"`
	Told     bool        `json:"told,omitempty"`
	Warnings []string    `json:"warn,omitempty"`
	Clients  bool        `json:"clients,omitempty"`
}

type wireUse struct {
	Task    model.TaskID `json:"t,omitempty"`
	Attempt int          `json:"a,omitempty"`
	Used    units.Bytes  `json:"u,omitempty"`
	Peak    units.Bytes  `json:"peak,omitempty"`
	Active  float64      `json:"on,omitempty"`
	Timed   bool         `json:"timed,omitempty"`
	Client  bool         `json:"client,omitempty"`
}

// Text returns the published form of the report.
func (r Report) Text() (string, error) {
	out := wire{Boot: r.Boot, GPUs: make([]wireGPU, len(r.GPUs))}
	for i, s := range r.GPUs {
		out.GPUs[i] = wireGPU{
			UUID: s.UUID, Used: s.Used, SMACT: digits(s.SMACT), SMOCC: digits(s.SMOCC), DRAMA: digits(s.DRAMA), Metrics: s.Metrics, Coarse: s.Coarse,
			Celsius: digits(s.TemperatureC), ECC: s.ECCErrors, Watts: digits(s.PowerW), Joules: digits(s.EnergyJ), Counter: digits(s.CounterJ),
			Programs: together(s.Processes), Fault: s.Fault, Lasts: s.Lasts, Told: s.Told, Warnings: s.Warnings, Clients: s.ClientsTold,
		}
	}
	b, err := json.Marshal(out)
	return string(b), err
}

// ReadReport parses the result of [Report.Text].
func ReadReport(text string) (Report, error) {
	var in wire
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return Report{}, err
	}
	out := Report{Boot: in.Boot, GPUs: make([]gpu.Sample, len(in.GPUs))}
	for i, g := range in.GPUs {
		s := gpu.Sample{
			UUID: g.UUID, Used: g.Used, SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Metrics: g.Metrics, Coarse: g.Coarse,
			TemperatureC: g.Celsius, ECCErrors: g.ECC, PowerW: g.Watts, EnergyJ: g.Joules, CounterJ: g.Counter,
			Fault: g.Fault, Lasts: g.Lasts, Told: g.Told, Warnings: g.Warnings, ClientsTold: g.Clients,
		}
		for _, p := range g.Programs {
			s.Processes = append(s.Processes, gpu.Process{Task: p.Task, Attempt: p.Attempt, Used: p.Used, Peak: p.Peak, Active: p.Active, Timed: p.Timed, Client: p.Client})
		}
		out.GPUs[i] = s
	}
	return out, nil
}

// digits rounds to three decimal places.
func digits(v float64) float64 { return math.Round(v*1000) / 1000 }

// together sums the memory of processes of the same attempt, in the order in which they
// were first seen. A process without a known peak counts with its present memory.
func together(all []gpu.Process) (out []wireUse) {
	for _, p := range all {
		i := slices.IndexFunc(out, func(u wireUse) bool { return u.Task == p.Task && u.Attempt == p.Attempt })
		if i < 0 {
			i = len(out)
			out = append(out, wireUse{Task: p.Task, Attempt: p.Attempt})
		}
		u := &out[i]
		u.Used += p.Used
		u.Peak += max(p.Used, p.Peak)
		u.Active = min(1, u.Active+p.Active)
		u.Timed = u.Timed || p.Timed
		u.Client = u.Client || p.Client
	}
	for i := range out {
		if out[i].Active = digits(out[i].Active); out[i].Peak == out[i].Used {
			out[i].Peak = 0
		}
	}
	return out
}

// hear reads the agents' reports, and stores the time at which a new one arrived.
func (s *Source) hear(all []kubernetes.Report) map[string]Report {
	out, still := map[string]Report{}, map[string]bool{}
	for _, r := range all {
		read, known := s.texts[r.Node]
		if !known || read.text != r.Text {
			is, err := ReadReport(r.Text)
			if err != nil {
				continue // from an agent of another version
			}
			read = reported{r.Text, is}
			s.texts[r.Node] = read
		}
		out[r.Node], still[r.Node] = read.is, true
		if s.told[r.Node].count != r.Count {
			s.told[r.Node] = telling{r.Count, s.now()}
		}
	}
	for node := range s.told {
		if !still[node] {
			delete(s.told, node)
			delete(s.texts, node)
		}
	}
	return out
}

// Remember does nothing: the agent of a node stores the faults of its GPUs. It implements
// [gpu.Remembering].
func (s *Source) Remember(context.Context, string, string, bool) error { return nil }

// Forgive asks the agent of a GPU's node to clear the GPU's faults.
func (s *Source) Forgive(ctx context.Context, uuid string) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.devices, func(d gpu.Device) bool { return d.UUID == uuid })
	node := ""
	if i >= 0 {
		node = s.devices[i].Node
	}
	s.mu.Unlock()
	if node == "" {
		return nil // its node does not offer the GPU now
	}
	return s.reader.Forgive(ctx, node, uuid)
}

// catchUpEvery is the time between two checks for newer reports.
const catchUpEvery = 100 * time.Millisecond

// CatchUp waits until the agents of these GPUs' nodes have sent a report later than end. end is
// a time of the nodes' clocks, which a cluster rounds down to seconds. It does not wait for
// GPUs without an agent. It implements [gpu.Lagging].
func (s *Source) CatchUp(ctx context.Context, uuids []string, end time.Time) {
	after := end.Truncate(time.Second).Add(time.Second).UnixMicro()
	for {
		if _, err := s.read(ctx); err == nil && !s.behind(uuids, after) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(catchUpEvery):
		}
	}
}

// behind reports whether an agent of these GPUs has sent no report after a time in
// microseconds.
func (s *Source) behind(uuids []string, after int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.devices, func(d gpu.Device) bool {
		told, has := s.told[d.Node]
		return has && told.count < after && slices.Contains(uuids, d.UUID)
	})
}
