package admission

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestDeviceLinks checks that a link in an allowed folder cannot give access to another device,
// and that a folder gives only its allowed devices.
func TestDeviceLinks(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"null": "/dev/null", "zero": "/dev/zero", "file": "/etc/hostname"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	allowed := []string{dir + "/*", "/dev/null"}
	for name, may := range map[string]bool{"null": true, "zero": false, "file": false, "gone": false} {
		if got := mayHave(allowed, filepath.Join(dir, name)); got != may {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := os.Stat("/dev/pts/ptmx"); err != nil {
		return
	}
	list, err := allowedDevices([]string{"/dev/pts/pt*"}, "/dev/pts")
	if err != nil || !slices.Equal(list, []string{"/dev/pts/ptmx"}) {
		t.Errorf("of a folder: %v, %v", list, err)
	}
}
