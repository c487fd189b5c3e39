package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDriverCheck checks that doctor reports simulated GPUs under auto only if no part of
// NVIDIA's driver is present.
func TestDriverCheck(t *testing.T) {
	for _, tt := range []struct {
		name, source, status, detail string
		files                        map[string]string
	}{
		{"nothing", "auto", checkWarning, "would simulate", nil},
		{"nothing, but asked for", "nvml", checkFailure, "no NVIDIA driver is loaded", nil},
		{"simulated", "sim:dgx-station-a100", checkOK, "simulated: dgx-station-a100", nil},
		{"a card without a driver", "auto", checkFailure, "there is the card at PCI address 0000:17:00.0, but no NVIDIA driver is loaded: the daemon will not start", map[string]string{
			"sys/bus/pci/devices/0000:17:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:17:00.0/class": "0x030200\n"}},
		{"a driver whose module does not load", "auto", checkFailure, "there is /usr/bin/nvidia-smi, but", map[string]string{"usr/bin/nvidia-smi": ""}},
		{"a driver", "auto", checkOK, "NVRM version: 580", map[string]string{"proc/driver/nvidia/version": "NVRM version:  580\nGCC"}},
	} {
		root := t.TempDir()
		for path, text := range tt.files {
			path = filepath.Join(root, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if c := driverCheck(root, tt.source); c.Status != tt.status || !strings.Contains(c.Detail, tt.detail) || (c.Fix == "") != (c.Status == checkOK) {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
}

func TestServiceCheck(t *testing.T) {
	show := func(text string) asking { return func(context.Context, string, ...string) string { return text } }
	for _, text := range []string{"", "LoadState=not-found\nActiveState=inactive\n"} {
		if said := service(t.Context(), show(text)); said != nil {
			t.Errorf("%q: %v", text, said)
		}
	}
	for _, tt := range []struct{ active, enabled, status, mend string }{
		{"active", "enabled", checkOK, ""},
		{"active", "disabled", checkWarning, "systemctl enable carma"},
		{"inactive", "disabled", checkFailure, "systemctl enable --now carma"},
		{"inactive", "masked", checkFailure, "systemctl unmask carma"},
		{"failed", "enabled", checkFailure, "journalctl -u carma"},
		{"activating\nSubState=auto-restart", "enabled", checkFailure, "journalctl -u carma -n 20"},
		{"activating", "enabled", checkWarning, "journalctl -u carma -f"},
	} {
		said := service(t.Context(), show("LoadState=loaded\nActiveState="+tt.active+"\nUnitFileState="+tt.enabled+"\nResult=exit-code\n"))
		if c := serviceCheck(said); c.Status != tt.status || !strings.Contains(c.Fix, tt.mend) || (c.Fix == "") != (tt.mend == "") {
			t.Errorf("%+v: %+v", tt, c)
		}
	}
}

func TestAdminsCheck(t *testing.T) {
	for _, tt := range []struct {
		name, entry, status, detail string
		root                        bool
		groups                      []int
	}{
		{"no group", "", checkWarning, "there is no group carma", true, []int{0}},
		{"nobody", "carma:x:987:\n", checkWarning, "nobody is in group carma", true, []int{0}},
		{"somebody, for root", "carma:x:987:ann,bob\n", checkOK, "has: ann, bob", true, []int{0}},
		{"an admin", "carma:x:987:ann\n", checkOK, "you are in group carma", false, []int{1000, 987}},
		{"a user", "carma:x:987:ann\n", checkOK, "you are not in group carma: you may use carma", false, []int{1001}},
	} {
		c := adminsCheck(t.Context(), func(context.Context, string, ...string) string { return tt.entry }, "carma", tt.root, tt.groups)
		if c.Status != tt.status || !strings.Contains(c.Detail, tt.detail) || (c.Fix == "") != (c.Status == checkOK) {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
}

func TestVersionCheck(t *testing.T) {
	if _, differ := versionCheck("1.0.0", "1.0.0"); differ {
		t.Error("the same")
	}
	if c, differ := versionCheck("1.1.0", "1.0.0"); !differ || c.Status != checkWarning || !strings.Contains(c.Fix, "restart carma") {
		t.Errorf("%+v", c)
	}
}
