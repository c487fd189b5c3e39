package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/containers"
)

func TestAccessDanger(t *testing.T) {
	for _, row := range []struct {
		mode             containers.Attach
		cgroups, toolkit string
		status, detail   string
	}{
		{containers.AttachDeviceRequest, "systemd", "", "warning", "daemon-reload takes the GPUs"},
		{containers.AttachRuntime, "systemd", "legacy", "warning", "daemon-reload takes the GPUs"},
		{containers.AttachRuntime, "systemd", "", "warning", "daemon-reload may take the GPUs"},
		{containers.AttachRuntime, "systemd", "cdi", "ok", "knows the device nodes"},
		{containers.AttachCDI, "systemd", "", "ok", "knows the device nodes"},
		{containers.AttachNodes, "systemd", "", "ok", "knows the device nodes"},
		{containers.AttachDeviceRequest, "cgroupfs", "", "ok", "cgroupfs manages"},
		{containers.AttachDeviceRequest, "", "", "ok", "not known"},
		{"", "systemd", "", "ok", "not known"},
	} {
		c := accessDanger(row.mode, row.cgroups, row.toolkit)
		if c.Status != row.status || !strings.Contains(c.Detail, row.detail) || (c.Fix == "") != (c.Status == "ok") {
			t.Errorf("%+v: %+v", row, c)
		}
	}
}

func TestDriverFiles(t *testing.T) {
	const module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
	library := func(v string) map[string]string {
		return map[string]string{"proc/driver/nvidia/version": module, "usr/lib/x86_64-linux-gnu/libcuda.so.1": "->libcuda.so." + v}
	}
	with := func(more ...string) map[string]string {
		all := library("550.54.14")
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for name, row := range map[string]struct {
		files               map[string]string
		mounts              []string
		status, detail, fix string
	}{
		"equal":                     {library("550.54.14"), nil, "ok", "libraries are of driver 550.54.14", ""},
		"no driver":                 {nil, nil, "ok", "not known", ""},
		"no library":                {map[string]string{"proc/driver/nvidia/version": module}, nil, "ok", "in no usual folder", ""},
		"an update without restart": {library("560.35.03"), nil, "failure", "driver 550.54.14 and /usr/lib/x86_64-linux-gnu/libcuda.so.1 of 560.35.03: CUDA programs end with error 803", "restart the machine"},
		"CDI files of this driver":  {with(), []string{"/usr/lib/libcuda.so.550.54.14"}, "ok", "550.54.14", ""},
		"older CDI files":           {with(), []string{"/usr/lib/libcuda.so.535.104.05"}, "failure", "the CDI files are of driver 535.104.05, and the kernel module is of 550.54.14", "nvidia-ctk cdi generate"},
		"no socket":                 {with(), []string{"/run/nvidia-persistenced/socket"}, "failure", "which is not there", "nvidia-persistenced"},
		"a socket":                  {with("run/nvidia-persistenced/socket", "", "usr/bin/nvidia-persistenced", ""), []string{"/run/nvidia-persistenced/socket"}, "ok", "", ""},
		"persistenced is stopped":   {with("usr/bin/nvidia-persistenced", ""), nil, "warning", "does not run", "systemctl enable --now nvidia-persistenced"},
		"forward compatibility":     {with("etc/ld.so.conf.d/cuda.conf", "/usr/local/cuda/compat\n"), nil, "warning", "/etc/ld.so.conf.d/cuda.conf has the machine's programs", "ldconfig"},
		"two faults":                {with("etc/ld.so.conf", "/usr/local/cuda/compat\n"), []string{"/usr/lib/libcuda.so.535.104.05"}, "failure", "forward compatibility", "cdi generate --output=/etc/cdi/nvidia.yaml; remove the line"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range row.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if target, ok := strings.CutPrefix(text, "->"); ok {
					if err := os.Symlink(target, path); err != nil {
						t.Fatal(err)
					}
				} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c := driverFilesCheck(root, row.mounts)
			if c.Status != row.status || !strings.Contains(c.Detail, row.detail) || !strings.Contains(c.Fix, row.fix) || (c.Fix == "") != (c.Status == "ok") {
				t.Errorf("%+v", c)
			}
		})
	}
}
