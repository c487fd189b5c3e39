package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cards"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/configs/servers"
	"carma/containers"
	"carma/runner"
	"carma/runner/clock"
	"carma/runner/gpu"
)

// TestForReal checks that options for simulated GPUs are refused on real GPUs.
func TestForReal(t *testing.T) {
	for _, tt := range []struct {
		attach string
		speed  float64
		err    string
	}{
		{"auto", 1, ""},
		{"device-request", 1, ""},
		{"cdi", 1, ""},
		{"simulated", 1, "--attach simulated gives a task no GPU"},
		{"auto", 60, "--speed 60 needs simulated GPUs"},
	} {
		err := forReal(settings.Config{GPUs: "nvml", Attach: tt.attach, Speed: tt.speed})
		if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || cli.CodeOf(err) != cli.ExitUsage) {
			t.Errorf("%s at speed %v: %v", tt.attach, tt.speed, err)
		}
	}
}

// TestMayPretend checks that GPUs are simulated only on request if any part of NVIDIA's driver
// is present.
func TestMayPretend(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		files      map[string]string
	}{
		{"nothing", "", nil},
		{"another card", "", map[string]string{"sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n", "sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n"}},
		{"a network device", "", map[string]string{"sys/bus/pci/devices/0000:00:02.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:00:02.0/class": "0x020000\n"}},
		{"a card without a driver", "the card at PCI address 0000:17:00.0", map[string]string{"sys/bus/pci/devices/0000:17:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:17:00.0/class": "0x030200\n"}},
		{"a driver without its library", "/proc/driver/nvidia", map[string]string{"proc/driver/nvidia/version": "NVRM"}},
		{"a driver whose card has fallen off the bus", "/usr/bin/nvidia-smi", map[string]string{"usr/bin/nvidia-smi": ""}},
		{"a device node", "/dev/nvidiactl", map[string]string{"dev/nvidiactl": ""}},
	} {
		root := t.TempDir()
		for path, text := range tt.files {
			path = filepath.Join(root, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		err := mayPretend(&cards.NoDriver{UsageError: cli.UsageError{What: "no library", Hint: "install it"}}, root)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err == nil || cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), "there is "+tt.want+", but the GPUs cannot be read: no library") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestNoGPUs: without a driver nvml is refused in one line, and auto simulates. Where there
// is a driver that does not answer, auto is refused.
func TestNoGPUs(t *testing.T) {
	if gpu.NVIDIAHere("/") != "" {
		t.Skip("there is an NVIDIA driver")
	}
	open := func(source, root string) (gpu.Source, *runner.Options, error) {
		config := settings.Default()
		config.GPUs, config.DataDir, config.Speed = source, t.TempDir(), 60
		config.DCGMExporter = "http://127.0.0.1:1/metrics"
		opt := &runner.Options{}
		s, err := openAt(t.Context(), root, config, clock.New(1), opt, zerolog.Nop())
		return s, opt, err
	}
	for _, source := range []string{"nvml", "nvml:0,1"} {
		_, _, err := open(source, "/")
		var none *cards.NoDriver
		if !errors.As(err, &none) || cli.CodeOf(err) != cli.ExitUsage || none.Hint == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", source, err)
		}
	}
	broken := t.TempDir() // a machine with a driver that does not answer
	if err := errors.Join(os.Mkdir(filepath.Join(broken, "dev"), 0o755), os.WriteFile(filepath.Join(broken, "dev/nvidiactl"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if s, _, err := open("auto", broken); err == nil || cli.CodeOf(err) != cli.ExitUsage || !strings.Contains(err.Error(), "there is /dev/nvidiactl, but") {
		t.Errorf("beside a broken driver auto opens %v: %v", s, err)
	}
	s, opt, err := open("auto", "/")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Name() != "sim:"+servers.Default || opt.Attach != containers.AttachSimulated {
		t.Errorf("auto opens %s, attached by %s", s.Name(), opt.Attach)
	}
}
