//go:build cgo

package nvml

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
)

// TestNear: cards that NVLink joins have one name, also through other cards, and each has
// its NUMA node from the kernel.
func TestNear(t *testing.T) {
	root := t.TempDir()
	r := newRack(dgxa100.New(), false)
	for i, p := range r.gpus {
		bus := fmt.Sprintf("00000000:%02X:00.0", 0x3a+i)
		p.GetPciInfoFunc = func() (info lib.PciInfo, _ lib.Return) {
			for at, c := range bus {
				info.BusId[at] = int8(c)
			}
			return info, lib.SUCCESS
		}
		folder := filepath.Join(root, "sys/bus/pci/devices", fmt.Sprintf("0000:%02x:00.0", 0x3a+i))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		node := fmt.Sprintln(i / 4)
		if i == 7 {
			node = "-1\n"
		}
		if err := os.WriteFile(filepath.Join(folder, "numa_node"), []byte(node), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	join := func(a, b int) {
		r.gpus[a].joined, r.gpus[b].joined = append(r.gpus[a].joined, r.gpus[b]), append(r.gpus[b].joined, r.gpus[a])
	}
	join(0, 4)
	join(1, 2)
	join(3, 5)
	join(5, 2) // 1, 2, 3 and 5, one to the other
	links, sockets := "", ""
	for _, d := range devices(t, r.open(t, Options{Root: root})) {
		links += fmt.Sprintf("%q ", d.Link)
		sockets += fmt.Sprintf("%q ", d.Socket)
	}
	if want := `"0" "1" "1" "1" "0" "1" "" "" `; links != want {
		t.Errorf("NVLink %s, want %s", links, want)
	}
	if want := `"0" "0" "0" "0" "1" "1" "1" "" `; sockets != want {
		t.Errorf("NUMA nodes %s, want %s", sockets, want)
	}
	// An old library has no such calls, and a mock without a function panics.
	r = newRack(dgxa100.New(), false)
	for _, name := range []string{"nvmlDeviceGetP2PStatus", "nvmlDeviceGetPciInfo_v3"} {
		r.gone[name] = true
	}
	for _, p := range r.gpus {
		p.GetP2PStatusFunc, p.GetPciInfoFunc = nil, nil
	}
	if d := devices(t, r.open(t, Options{Root: root}))[0]; d.Link != "" || d.Socket != "" {
		t.Errorf("from an old library: %+v", d)
	}
}
