package daemon

import (
	"bytes"
	"os"
	"path/filepath"
)

// nvidiaHere says what shows that this machine has NVIDIA GPUs or their driver, though
// the driver may not work; empty: nothing. root is where the machine's files are, / in
// all but tests.
func nvidiaHere(root string) (sign string) {
	for _, path := range []string{"/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia", "/sys/module/nvidia"} {
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
// vendor 10de, class 03 (display) or 12 (accelerators). Its network and sound devices
// are none.
func isNVIDIA(device string) bool {
	vendor, _ := os.ReadFile(filepath.Join(device, "vendor"))
	class, _ := os.ReadFile(filepath.Join(device, "class"))
	return bytes.HasPrefix(vendor, []byte("0x10de")) && (bytes.HasPrefix(class, []byte("0x03")) || bytes.HasPrefix(class, []byte("0x12")))
}
