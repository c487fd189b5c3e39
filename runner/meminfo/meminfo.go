// Package meminfo reads the amount of memory of the machine.
package meminfo

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"carma/internal/units"
)

// Read returns the machine's memory that is available without swapping, and its total
// memory, or 0 if unknown. root is the folder with /proc; empty means /.
func Read(root string) (free, total units.Bytes) {
	b, _ := os.ReadFile(filepath.Join("/", root, "proc/meminfo"))
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil:
		case fields[0] == "MemAvailable:":
			free = units.Bytes(n) * units.KiB
		case fields[0] == "MemTotal:":
			total = units.Bytes(n) * units.KiB
		}
	}
	return free, total
}
