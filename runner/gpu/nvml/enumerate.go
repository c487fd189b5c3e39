//go:build cgo

package nvml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/internal/units"

	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// card is a physical GPU.
type card struct {
	handle   lib.Device
	uuid     string
	index    int // index in nvidia-smi
	units    []*unit
	meter    meter
	xids     []uint64 // fatal Xids since the source was opened
	kept     string   // fault that an earlier source recorded, or ""
	wants    string   // fault for which the driver requests a reset, or ""
	told     bool     // the driver has requested a reset since the fault began
	warnings []string // warnings from Xids
	broken   string   // warning about memory pages that the GPU could not replace
	weak     []string // warnings found by examine
	ecc      uint64
}

// unit is one GPU in carma's sense: a card, or a MIG instance of one.
type unit struct {
	*card
	handle   lib.Device
	instance int // GPU instance id, or -1 for the card itself
	device   gpu.Device
	// share is the unit's part of the card's power: instances of one card share
	// it by memory.
	share float64
	// reserved is the memory in bytes that the driver reserves for itself, if the library
	// counts it as used.
	reserved uint64
	gpm      *gpm
	times    times
	last     gpu.Sample
	seen     bool // last is a reading
	lost     bool // the driver reports it as lost
	bad      int  // number of consecutive readings that failed or were impossible
}

// enumerate finds the selected cards, and their MIG instances.
func (s *Source) enumerate() error {
	n, ret := s.lib.DeviceGetCount()
	if ret != lib.SUCCESS {
		return &Unavailable{Text: "the GPUs cannot be counted: " + message(ret), Fix: "nvidia-smi should fail as well; look at dmesg"}
	}
	if n == 0 {
		return &Unavailable{Text: "the NVIDIA driver is there, but it has found no GPU", Fix: "look at dmesg and lspci; or simulate: carma daemon --gpus sim:dgx-station-a100"}
	}
	var found []*card
	for i := range n {
		c, err := s.card(i)
		if err != nil {
			s.note(fmt.Sprintf("GPU %d is left out: %v", i, err))
			continue
		}
		found = append(found, c)
	}
	if err := s.choose(found); err != nil {
		return err
	}
	if len(s.units) == 0 {
		return &Unavailable{Text: "no GPU can be used: " + strings.Join(s.Notes(), "; "), Fix: "with MIG switched on, make instances: nvidia-smi mig -cgi ... -C; or look at dmesg"}
	}
	s.number()
	s.relate()
	return nil
}

// card describes the card at an index with all its units.
func (s *Source) card(index int) (*card, error) {
	handle, ret := s.lib.DeviceGetHandleByIndex(index)
	if ret != lib.SUCCESS {
		return nil, fmt.Errorf("it cannot be opened: %s", message(ret))
	}
	uuid, ret := handle.GetUUID()
	if ret != lib.SUCCESS || uuid == "" {
		return nil, fmt.Errorf("it has no UUID: %s", message(ret))
	}
	c := &card{handle: handle, uuid: uuid, index: index}
	name, ret := handle.GetName()
	if ret != lib.SUCCESS || name == "" {
		name = "NVIDIA GPU"
	}
	if s.partitioned(handle) {
		return c, s.instances(c, name)
	}
	u := &unit{card: c, handle: handle, instance: -1, share: 1, device: gpu.Device{UUID: uuid, Model: name, Exclusive: s.exclusive(handle)}}
	if err := s.size(u); err != nil {
		return nil, err
	}
	c.units = []*unit{u}
	return c, nil
}

// exclusive reports whether only one process at a time may use a card.
func (s *Source) exclusive(handle lib.Device) bool {
	if !s.has("nvmlDeviceGetComputeMode") {
		return false
	}
	mode, ret := handle.GetComputeMode()
	return ret == lib.SUCCESS && mode == lib.COMPUTEMODE_EXCLUSIVE_PROCESS
}

// partitioned reports whether MIG is on.
func (s *Source) partitioned(handle lib.Device) bool {
	if !s.has("nvmlDeviceGetMigMode") {
		return false
	}
	mode, _, ret := handle.GetMigMode()
	return ret == lib.SUCCESS && mode == lib.DEVICE_MIG_ENABLE
}

// instances adds the MIG instances of a card. The card itself is then not a GPU, because
// nothing can run on it.
func (s *Source) instances(c *card, name string) error {
	n, ret := c.handle.GetMaxMigDeviceCount()
	if ret != lib.SUCCESS {
		return fmt.Errorf("its MIG instances cannot be counted: %s", message(ret))
	}
	taken := map[int]bool{}
	var total units.Bytes
	for i := range n {
		handle, ret := c.handle.GetMigDeviceHandleByIndex(i)
		if ret != lib.SUCCESS {
			continue // a slot without an instance
		}
		u := &unit{card: c, handle: handle}
		uuid, ret := handle.GetUUID()
		instance, ret2 := handle.GetGpuInstanceId()
		if ret != lib.SUCCESS || ret2 != lib.SUCCESS || uuid == "" {
			s.note(fmt.Sprintf("a MIG instance of GPU %d is left out: it does not say which it is", c.index))
			continue
		}
		if taken[instance] {
			s.note(fmt.Sprintf("MIG device %s is left out: it shares the memory of GPU instance %d with another; make one compute instance in each", uuid, instance))
			continue
		}
		taken[instance] = true
		u.instance = instance
		u.device = gpu.Device{UUID: uuid, Model: instanceModel(handle, name), Parent: c.uuid}
		if err := s.size(u); err != nil {
			s.note(fmt.Sprintf("MIG device %s is left out: %v", uuid, err))
			continue
		}
		total += u.device.Capacity
		c.units = append(c.units, u)
	}
	if len(c.units) == 0 {
		return fmt.Errorf("MIG is on, but it has no instance")
	}
	for _, u := range c.units {
		u.share = float64(u.device.Capacity) / float64(total)
	}
	return nil
}

func instanceModel(handle lib.Device, card string) string {
	if name, ret := handle.GetName(); ret == lib.SUCCESS && strings.Contains(name, "MIG") {
		return name
	}
	return card + " MIG"
}

// mostMemory is the largest plausible memory of a card, in bytes: 16 TiB.
const mostMemory = 16 << 40

// size reads a unit's memory for the first time.
func (s *Source) size(u *unit) error {
	m, ret := s.memory(u)
	if ret != lib.SUCCESS {
		return fmt.Errorf("its memory cannot be read: %s", message(ret))
	}
	if m.total == 0 || m.total > mostMemory || m.used > m.total {
		return fmt.Errorf("the driver says that it has %d bytes of memory, %d in use", m.total, m.used)
	}
	if !m.net {
		u.reserved = s.reserve(u, m)
	}
	u.device.Capacity = units.Bytes(m.total - u.reserved)
	if m.machine {
		s.note(fmt.Sprintf("GPU %d has no memory of its own and uses the machine's, which the GPU's programs and all others share: keep some of it free with headroom", u.index))
	}
	return nil
}

// mostReserve is the largest amount of memory, in bytes, that counts as the driver's own.
const mostReserve = 1 << 30

// reserve returns the memory in bytes that a driver before version 510 reserves for
// itself and counts as used. It is known only while nobody uses the GPU, otherwise 0.
func (s *Source) reserve(u *unit, m memory) uint64 {
	list, ok, _ := s.listed(u)
	if !ok || len(list) > 0 || m.used > mostReserve {
		return 0
	}
	return m.used
}

// choose keeps the cards and instances that Only names.
func (s *Source) choose(found []*card) error {
	wanted := map[*unit]bool{}
	for _, name := range s.opt.Only {
		matched := false
		for _, c := range found {
			for _, u := range c.units {
				if name == strconv.Itoa(c.index) || strings.EqualFold(name, c.uuid) || strings.EqualFold(name, u.device.UUID) {
					wanted[u], matched = true, true
				}
			}
		}
		if !matched {
			return &Unavailable{Text: fmt.Sprintf("there is no GPU %s", name), Fix: "take one of " + strings.Join(names(found), ", ")}
		}
	}
	for _, c := range found {
		if len(s.opt.Only) > 0 {
			c.units = slices.DeleteFunc(c.units, func(u *unit) bool { return !wanted[u] })
		}
		if len(c.units) > 0 {
			s.cards = append(s.cards, c)
			s.units = append(s.units, c.units...)
		}
	}
	return nil
}

func names(found []*card) []string {
	var out []string
	for _, c := range found {
		out = append(out, fmt.Sprintf("%d (%s)", c.index, c.uuid))
		for _, u := range c.units {
			if u.instance >= 0 {
				out = append(out, u.device.UUID)
			}
		}
	}
	return out
}

// number assigns the GPUs the indices of nvidia-smi. MIG instances have none there; if
// there are any, all GPUs are numbered in order.
func (s *Source) number() {
	parts := slices.ContainsFunc(s.units, func(u *unit) bool { return u.instance >= 0 })
	for i, u := range s.units {
		u.device.Index = u.index
		if parts {
			u.device.Index = i
		}
	}
}
