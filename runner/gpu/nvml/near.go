//go:build cgo

package nvml

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// relate finds the cards that NVLink connects, directly or through other cards, and the
// NUMA node of each. MIG instances have no NVLink.
func (s *Source) relate() {
	for _, u := range s.units {
		u.device.Socket = s.socket(u)
	}
	if !s.has("nvmlDeviceGetP2PStatus") {
		return
	}
	first := make([]int, len(s.units)) // by unit, the first unit of its NVLink group
	for i, u := range s.units {
		first[i] = i
		for j, other := range s.units[:i] {
			if s.linked(u, other) {
				from, to := max(first[i], first[j]), min(first[i], first[j])
				for k, f := range first {
					if f == from {
						first[k] = to
					}
				}
			}
		}
	}
	for i, f := range first {
		if f != i {
			name := strconv.Itoa(s.units[f].device.Index)
			s.units[f].device.Link, s.units[i].device.Link = name, name
		}
	}
}

// linked reports whether NVLink connects two cards.
func (s *Source) linked(a, b *unit) bool {
	if a.instance >= 0 || b.instance >= 0 {
		return false
	}
	status, ret := a.handle.GetP2PStatus(b.handle, lib.P2P_CAPS_INDEX_NVLINK)
	return ret == lib.SUCCESS && status == lib.P2P_STATUS_OK
}

// socket returns the NUMA node of a card, or "" if the machine has only one or it is
// unknown.
func (s *Source) socket(u *unit) string {
	if !s.has("nvmlDeviceGetPciInfo_v3") {
		return ""
	}
	pci, ret := u.card.handle.GetPciInfo()
	if ret != lib.SUCCESS {
		return ""
	}
	var bus strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		bus.WriteByte(byte(c))
	}
	name := strings.ToLower(bus.String()) // 00000000:3b:00.0; the kernel uses four leading digits
	if len(name) > 12 {
		name = name[len(name)-12:]
	}
	b, err := os.ReadFile(filepath.Join("/", s.opt.Root, "sys/bus/pci/devices", filepath.Base(name), "numa_node"))
	n, wrong := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || wrong != nil || n < 0 { // -1 means that the machine has one
		return ""
	}
	return strconv.Itoa(n)
}
