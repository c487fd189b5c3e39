package containers

import (
	"io/fs"
	"slices"
	"strings"
)

// nodesOf reads the driver's files, one per GPU. Their lines are:
//
//	GPU UUID: 	 GPU-6e2c0b3a-...
//	Device Minor: 	 0
func nodesOf(gpus fs.FS, uuids []string) []string {
	files, err := fs.Glob(gpus, "*/information")
	if err != nil {
		return nil
	}
	minors := map[string]string{}
	for _, file := range files {
		b, err := fs.ReadFile(gpus, file)
		if err != nil {
			continue
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(line, ":")
			fields[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
		minors[fields["GPU UUID"]] = fields["Device Minor"]
	}
	nodes := []string{}
	for _, id := range uuids {
		minor := minors[id]
		if minor == "" {
			return nil
		}
		nodes = append(nodes, "/dev/nvidia"+minor)
	}
	slices.Sort(nodes)
	return nodes
}
