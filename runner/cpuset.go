package runner

import (
	"os"
	"path/filepath"
	"strings"
)

// nearCPUs returns the processors at the NUMA node of an attempt's GPUs, in the kernel's
// format (0-15,32-47). It returns "" if the attempt has no GPU, its GPUs are at several
// nodes, or the node is unknown.
func (w *worker) nearCPUs() string {
	socket := ""
	for i, grant := range w.launch.Grants {
		at := w.devices()[grant.GPU].Socket
		if i > 0 && at != socket || at == "" {
			return ""
		}
		socket = at
	}
	if socket == "" {
		return ""
	}
	b, _ := os.ReadFile(filepath.Join("/", w.hostMem.root, "sys/devices/system/node/node"+socket, "cpulist"))
	return strings.TrimSpace(string(b))
}
