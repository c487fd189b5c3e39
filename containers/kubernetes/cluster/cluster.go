// Package cluster reads the GPUs of a Kubernetes cluster. It implements [gpu.Source].
//
// The drivers of the nodes publish the GPUs (ResourceSlices). Memory that claims of others have
// allocated counts as foreign memory, even if it is not used, because the cluster's scheduler
// allocates it to nobody else. The agents of the nodes (carma agent) report the used memory of
// each task. A GPU has a fault if its node takes no pods. A GPU that its node does not offer
// any more is not listed.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"carma/containers/kubernetes"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// Reader reads the cluster. It is a [kubernetes.Driver].
type Reader interface {
	Inventory(ctx context.Context) (kubernetes.Inventory, error)
	Forgive(ctx context.Context, node, uuid string) error
}

// silence is the time without a report from an agent after which its node's GPUs have a
// fault. Agents report at least every ten seconds.
const silence = 30 * time.Second

// Source reads the GPUs of a cluster.
type Source struct {
	reader Reader
	now    func() time.Time
	news   chan struct{}

	mu      sync.Mutex
	devices []gpu.Device   // in the state of the last reading
	index   map[string]int // index of each GPU that was ever listed, by UUID
	told    map[string]telling
	texts   map[string]reported // in the state of the last reading
	notes   []string
}

// telling records an agent's last report and when it arrived, by this machine's clock.
type telling struct {
	count int64
	at    time.Time
}

// reported is a report and its text.
type reported struct {
	text string
	is   Report
}

var (
	_ gpu.Source = (*Source)(nil)
	_ gpu.Coming = (*Source)(nil)
	_ gpu.Noting = (*Source)(nil)

	_ gpu.Remembering = (*Source)(nil)
	_ gpu.Lagging     = (*Source)(nil)
)

// Driver is the driver of a daemon that runs tasks on the cluster.
type Driver struct{ *kubernetes.Driver }

// GPUs opens the source of the cluster's GPUs.
func (d Driver) GPUs(ctx context.Context) (gpu.Source, error) { return Open(ctx, d.Driver) }

// Open reads the cluster once.
func Open(ctx context.Context, reader Reader) (*Source, error) {
	return open(ctx, reader, time.Now)
}

func open(ctx context.Context, reader Reader, now func() time.Time) (*Source, error) {
	s := &Source{reader: reader, now: now, news: make(chan struct{}, 1), index: map[string]int{}, told: map[string]telling{}, texts: map[string]reported{}}
	if _, err := s.read(ctx); err != nil {
		return nil, err
	}
	<-s.news // the caller of Open lists the GPUs anyway
	return s, nil
}

// Name is "cluster".
func (s *Source) Name() string { return "cluster" }

// Close does nothing, because the source does not own the reader.
func (s *Source) Close() error { return nil }

// News receives a token when the list of GPUs has changed.
func (s *Source) News() <-chan struct{} { return s.news }

// Notes returns warnings for the administrator.
func (s *Source) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// GPUs returns the GPUs that the nodes offer. Their indexes number the GPUs of the whole
// cluster and stay the same while the source is open.
func (s *Source) GPUs(context.Context) ([]gpu.Device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.devices), nil
}

// Sample reads the cluster once.
func (s *Source) Sample(ctx context.Context) ([]gpu.Sample, error) { return s.read(ctx) }

func (s *Source) read(ctx context.Context) ([]gpu.Sample, error) {
	all, err := s.reader.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := make(map[string]kubernetes.Node, len(all.Nodes))
	for _, n := range all.Nodes {
		nodes[n.Name] = n
	}
	reports, foreign := s.hear(all.Reports), claimed(all.Claims)
	devices, samples := make([]gpu.Device, 0, len(all.Devices)), make([]gpu.Sample, 0, len(all.Devices))
	s.notes = nil
	seen := make(map[string]string, len(all.Devices))
	for i := range all.Devices {
		d := &all.Devices[i]
		if on, ok := seen[d.UUID]; ok {
			s.notes = append(s.notes, fmt.Sprintf("nodes %s and %s both offer the GPU %s; only the first counts", on, d.Node, d.UUID))
			continue
		}
		if d.Bytes <= 0 {
			s.notes = append(s.notes, fmt.Sprintf("node %s offers the GPU %s without its memory; it is not used", d.Node, d.UUID))
			continue
		}
		seen[d.UUID] = d.Node
		devices = append(devices, s.device(d, nodes[d.Node].Boot))
		sample := reports[d.Node].of(d)
		sample.add(foreign[where{d.Driver, d.Pool, d.Device}].of(d))
		sample.Fault = cmp.Or(s.fault(d, nodes), sample.Fault)
		samples = append(samples, sample.Sample)
	}
	slices.SortFunc(devices, func(a, b gpu.Device) int { return a.Index - b.Index })
	slices.SortFunc(samples, func(a, b gpu.Sample) int { return s.index[a.UUID] - s.index[b.UUID] })
	if s.devices == nil || !slices.Equal(s.devices, devices) {
		s.devices = append([]gpu.Device{}, devices...)
		select {
		case s.news <- struct{}{}:
		default:
		}
	}
	return samples, nil
}

// device describes a GPU. A new GPU gets the next index.
func (s *Source) device(d *kubernetes.Device, boot string) gpu.Device {
	if _, known := s.index[d.UUID]; !known {
		s.index[d.UUID] = len(s.index)
	}
	out := gpu.Device{
		UUID: d.UUID, Index: s.index[d.UUID], Model: cmp.Or(d.Model, d.Driver), Capacity: units.Bytes(d.Bytes), Node: d.Node, Boot: boot, Shares: true,
	}
	switch {
	case !d.Shared:
		out.Exclusive, out.Sharing = true, model.SharingAlone
	case simulated(d):
		out.Sharing = model.SharingMPS
	default:
		out.Sharing = model.SharingTurns
	}
	return out
}

// simulated reports whether carma simulates the GPU. Nothing is known about such a GPU without
// its node's agent.
func simulated(d *kubernetes.Device) bool { return d.Driver == kubernetes.SimulatedDriver }

// fault returns the reason why a GPU gets no tasks, independent of its samples, or empty if it
// may get tasks.
func (s *Source) fault(d *kubernetes.Device, nodes map[string]kubernetes.Node) string {
	node, ok := nodes[d.Node]
	told := s.told[d.Node]
	switch {
	case !ok:
		return "its node " + d.Node + " is not in the cluster any more"
	case node.Closed != "":
		return node.Closed
	case d.Taint != "":
		return "it has the taint " + d.Taint
	case told.count == 0 && !simulated(d):
		return "" // it is allocated although its samples are unknown
	case told.count == 0:
		return "no agent tells what it does; run carma agent on " + d.Node
	case s.now().Sub(told.at) > silence:
		return "the agent of its node " + d.Node + " tells nothing any more; see that carma agent runs there"
	}
	return ""
}

// where identifies a device by its driver, pool and name.
type where struct{ driver, pool, device string }

// share is the part of a device that other claims have allocated.
type share struct {
	bytes units.Bytes
	all   bool // one of these claims has the whole device
}

func (b share) of(d *kubernetes.Device) units.Bytes {
	if b.all {
		return units.Bytes(d.Bytes)
	}
	return min(b.bytes, units.Bytes(d.Bytes))
}

// claimed sums the parts that claims of others have allocated, by device.
func claimed(all []kubernetes.Claim) map[where]share {
	out := map[where]share{}
	for i := range all {
		c := &all[i]
		if c.Ours {
			continue
		}
		at := where{c.Driver, c.Pool, c.Device}
		b := out[at]
		if b.all = b.all || c.Bytes < 0; c.Bytes > 0 {
			b.bytes += units.Bytes(c.Bytes)
		}
		out[at] = b
	}
	return out
}

// reading is a sample to which foreign claims are added.
type reading struct{ gpu.Sample }

// of returns the reading of a GPU in a report, or an empty one if the report does not
// name the GPU.
func (r Report) of(d *kubernetes.Device) *reading {
	for _, s := range r.GPUs {
		if s.UUID == d.UUID {
			return &reading{s}
		}
	}
	return &reading{gpu.Sample{UUID: d.UUID, Metrics: gpu.MetricsNone}}
}

// add adds the memory that others have allocated as foreign memory, less the memory that
// foreign processes already use.
func (r *reading) add(booked units.Bytes) {
	var used units.Bytes
	for _, p := range r.Processes {
		if p.Task == 0 {
			used += p.Used
		}
	}
	if booked > used {
		r.Processes = append(slices.Clone(r.Processes), gpu.Process{Used: booked - used})
		r.Used += booked - used
	}
}
