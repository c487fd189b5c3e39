package bare

import "os"

// shared are the device nodes that all NVIDIA GPUs share.
var shared = []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}

// Nodes lists the device nodes that a container needs beside its GPUs' own, as far as
// this machine has them. The container uses the machine's driver libraries, so none are
// listed.
func Nodes() (list []string) {
	for _, path := range shared {
		if _, err := os.Stat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}
