package bare

import "os"

// shared are the device nodes that all NVIDIA GPUs share.
var shared = []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}

// Nodes are the device nodes that a container needs beside those of its GPUs, as
// far as this machine has them. It needs no libraries of the driver: it has the
// machine's own.
func Nodes() (list []string) {
	for _, path := range shared {
		if _, err := os.Stat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}
