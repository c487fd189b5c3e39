package bare

import "os"

// shared lists the device nodes that all NVIDIA GPUs share.
var shared = []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}

// Nodes lists the machine's device nodes that a container needs in addition to the nodes
// of its GPUs. It lists no driver libraries: the container uses the machine's.
func Nodes() (list []string) {
	for _, path := range shared {
		if _, err := os.Stat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}
