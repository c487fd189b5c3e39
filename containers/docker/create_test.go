package docker

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"carma/containers"
)

func TestHostConfig(t *testing.T) {
	d := &Driver{opts: Options{Network: "none"}}
	gpus := []string{"GPU-a", "GPU-b"}
	for attach, want := range map[containers.Attach]string{
		containers.AttachDeviceRequest: `"DeviceRequests":[{"Driver":"","Count":0,"DeviceIDs":["GPU-a","GPU-b"],"Capabilities":[["gpu"]],"Options":null}]`,
		containers.AttachCDI:           `"DeviceRequests":[{"Driver":"cdi","Count":0,"DeviceIDs":["nvidia.com/gpu=GPU-a","nvidia.com/gpu=GPU-b"],"Capabilities":null,"Options":null}]`,
		containers.AttachRuntime:       `"Runtime":"nvidia"`,
		containers.AttachSimulated:     `"DeviceRequests":null`,
	} {
		h, err := d.hostConfig(containers.Spec{Attach: attach, GPUs: gpus, NoNewPrivileges: true})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{want, `"Privileged":false`, `"AutoRemove":false`, `"PidMode":""`, `"IpcMode":"private"`,
			`"UTSMode":""`, `"UsernsMode":""`, `"NetworkMode":"none"`, `"SecurityOpt":["no-new-privileges"]`,
			`"RestartPolicy":{"Name":"no","MaximumRetryCount":0}`, `"CapAdd":null`,
			`"LogConfig":{"Type":"json-file","Config":{"max-file":"3","max-size":"16m"}}`} {
			if !strings.Contains(string(b), part) {
				t.Errorf("%s: no %s in %s", attach, part, b)
			}
		}
		if attach != containers.AttachRuntime && h.Runtime != "" {
			t.Errorf("%s: runtime %s", attach, h.Runtime)
		}
	}
	if _, err := d.hostConfig(containers.Spec{Attach: "bogus", GPUs: gpus}); err == nil {
		t.Error("unknown attachment accepted")
	}
	h, err := d.hostConfig(containers.Spec{Attach: containers.AttachDeviceRequest})
	if err != nil || len(h.DeviceRequests) != 0 {
		t.Errorf("no GPUs: %v, %v, want no request: an empty one may mean all", h.DeviceRequests, err)
	}
}

func TestSandboxLimits(t *testing.T) {
	d := &Driver{opts: Options{Network: "bridge"}}
	h, err := d.hostConfig(containers.Spec{Sandbox: &containers.Sandbox{Memory: 1 << 30, CPUs: 1.5, Processes: 100}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"ExtraHosts":["sandbox:127.0.0.1"]`, `"NetworkMode":"none"`, `"CapDrop":["ALL"]`, `"ReadonlyRootfs":true`, `"Memory":1073741824`,
		`"MemorySwap":1073741824`, `"NanoCpus":1500000000`, `"PidsLimit":100`, `"Tmpfs":{"/tmp":"rw,nosuid,nodev,mode=1777,size=67108864"}`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("no %s in %s", part, b)
		}
	}
	if name := config(containers.Spec{Sandbox: &containers.Sandbox{}}).Hostname; name != "sandbox" {
		t.Errorf("host name %q", name)
	}
	if h, err = d.hostConfig(containers.Spec{Sandbox: &containers.Sandbox{}}); err != nil || h.Memory != 0 || h.PidsLimit != nil {
		t.Errorf("without limits: %+v, %v", h, err)
	}
}

func TestEnvGrantsNoMore(t *testing.T) {
	in := []string{"A=1", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES_X=kept"}
	got := env(containers.Spec{Env: in, GPUs: []string{"GPU-a", "GPU-b"}})
	if want := []string{"A=1", "NVIDIA_VISIBLE_DEVICES_X=kept", "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b"}; !slices.Equal(got, want) {
		t.Errorf("env = %q, want %q", got, want)
	}
	if got := env(containers.Spec{}); !slices.Equal(got, []string{"NVIDIA_VISIBLE_DEVICES=void"}) {
		t.Errorf("env without GPUs = %q", got)
	}
	if in[1] != "NVIDIA_VISIBLE_DEVICES=all" {
		t.Error("the caller's slice was changed")
	}
}

func TestNetworkOfOthersRefused(t *testing.T) {
	for _, name := range []string{"host", "container:abc"} {
		if _, err := New(Options{Network: name}); err == nil {
			t.Errorf("network %q accepted", name)
		}
	}
}
