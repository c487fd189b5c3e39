//go:build cgo

package nvml

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/internal/units"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
)

// TestMachineMemory checks that a card without its own memory (GB10) reports the machine's
// memory and the use of its processes. A card whose memory cannot be read for another reason is
// treated differently.
func TestMachineMemory(t *testing.T) {
	root := t.TempDir()
	meminfo := func(free int) {
		text := fmt.Sprintf("MemTotal: %d kB\nMemFree: 5 kB\nMemAvailable: %d kB\n", 120<<20, free<<20)
		if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc/meminfo"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	meminfo(110)
	r := newRack(dgxa100.New(), false)
	for i, p := range r.gpus {
		p.GetMemoryInfo_v2Func = func() (lib.Memory_v2, lib.Return) { return lib.Memory_v2{}, lib.ERROR_NOT_SUPPORTED }
		p.GetMemoryInfoFunc = func() (lib.Memory, lib.Return) { return lib.Memory{}, lib.ERROR_NOT_SUPPORTED }
		if i > 0 {
			p.GetMemoryInfoFunc = func() (lib.Memory, lib.Return) { return lib.Memory{}, lib.ERROR_UNKNOWN }
		}
	}
	s := r.open(t, Options{Root: root})
	all := devices(t, s)
	if len(all) != 1 || all[0].Capacity != 120*units.GiB {
		t.Fatalf("devices %+v", all)
	}
	if notes := strings.Join(s.Notes(), "\n"); !strings.Contains(notes, "GPU 0 has no memory of its own and uses the machine's") {
		t.Errorf("notes: %s", notes)
	}
	meminfo(80)
	r.change(func() { r.gpus[0].compute = []lib.ProcessInfo{{Pid: 42, UsedGpuMemory: 30 * gib}} })
	got := sampled(t, s)[0]
	if got.Used != 40*units.GiB || got.Fault != "" || len(got.Processes) != 1 || got.Processes[0].Used != 30*units.GiB {
		t.Errorf("sample %+v", got)
	}
}
