package gpu

import (
	"bytes"
	"os"
	"path/filepath"
)

// signs lists files that show an NVIDIA driver, which may not work: the driver's devices,
// kernel module and program, and the device of Windows' subsystem for Linux.
var signs = []string{"/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia", "/sys/module/nvidia", "/usr/bin/nvidia-smi", "/dev/dxg"}

// NVIDIAHere returns a sign that this machine has NVIDIA GPUs or their driver, which may
// not work, or "" if there is none. root is the folder with the machine's files, / except
// in tests.
func NVIDIAHere(root string) (sign string) {
	for _, path := range signs {
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			return path
		}
	}
	cards, _ := filepath.Glob(filepath.Join(root, "/sys/bus/pci/devices/*"))
	for _, card := range cards {
		if isNVIDIA(card) {
			return "the card at PCI address " + filepath.Base(card)
		}
	}
	return ""
}

// isNVIDIA reports whether a PCI device is a display or computing device of NVIDIA's:
// vendor 10de, class 03 (display) or 12 (accelerators). NVIDIA's network and sound
// devices have other classes.
func isNVIDIA(device string) bool {
	vendor, _ := os.ReadFile(filepath.Join(device, "vendor"))
	class, _ := os.ReadFile(filepath.Join(device, "class"))
	return bytes.HasPrefix(vendor, []byte("0x10de")) && (bytes.HasPrefix(class, []byte("0x03")) || bytes.HasPrefix(class, []byte("0x12")))
}
