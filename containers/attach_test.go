package containers

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestChooseAttach(t *testing.T) {
	dirs, nvidia := []string{"/etc/cdi"}, []string{"nvidia", "runc"}
	none := errors.New("no CDI file has it")
	for name, tc := range map[string]struct {
		c    Choice
		want Attach
		say  string // part of the reason or of the error
	}{
		"docker, toolkit":         {Choice{"docker", Engine{Runtimes: nvidia, CDIDirs: dirs}, true, false, none}, AttachDeviceRequest, "--gpus"},
		"docker, toolkit and CDI": {Choice{"docker", Engine{Runtimes: nvidia, CDIDirs: dirs}, true, false, nil}, AttachCDI, "CDI files"},
		"docker, refused":         {Choice{"docker", Engine{Runtimes: nvidia}, true, true, none}, AttachRuntime, "refuses --gpus"},
		"docker, refused, CDI":    {Choice{"docker", Engine{Runtimes: nvidia, CDIDirs: dirs}, true, true, nil}, AttachCDI, "CDI files"},
		"docker, refused, alone":  {Choice{"docker", Engine{}, true, true, none}, "", "nvidia-ctk runtime configure"},
		"docker, only CDI":        {Choice{"docker", Engine{CDIDirs: dirs}, false, false, nil}, AttachCDI, "CDI files"},
		"docker, CDI and runtime": {Choice{"docker", Engine{Runtimes: nvidia, CDIDirs: dirs}, false, false, nil}, AttachCDI, "CDI files"},
		"docker, no file":         {Choice{"docker", Engine{Runtimes: nvidia, CDIDirs: dirs}, false, false, none}, AttachRuntime, "nvidia runtime"},
		"docker, old":             {Choice{"docker", Engine{Runtimes: nvidia}, false, false, nil}, AttachRuntime, "nvidia runtime"},
		"docker, old, nothing":    {Choice{"docker", Engine{}, false, false, nil}, "", "from version 25"},
		"docker, nothing":         {Choice{"docker", Engine{CDIDirs: dirs}, false, false, none}, "", "no CDI file has it"},
		"containerd":              {Choice{"containerd", Engine{Runtimes: nvidia, CDIDirs: dirs}, true, false, nil}, AttachCDI, "CDI files"},
		"containerd, no file":     {Choice{"containerd", Engine{Runtimes: nvidia, CDIDirs: dirs}, true, false, none}, AttachRuntime, "no CDI file has it"},
		"containerd, nothing":     {Choice{"containerd", Engine{CDIDirs: dirs}, true, false, none}, "", "nvidia-ctk cdi generate"},
	} {
		got, why, err := ChooseAttach(tc.c)
		if err != nil {
			why = err.Error()
		}
		if got != tc.want || (err == nil) != (tc.want != "") || !strings.Contains(why, tc.say) {
			t.Errorf("%s: %q, %q, %v, want %q with %q", name, got, why, err, tc.want, tc.say)
		}
	}
}

func TestCheckGPUs(t *testing.T) {
	gpus := []string{"GPU-a", "GPU-b"}
	nodes := []string{"/dev/nvidia0", "/dev/nvidia1"}
	good := Attachment{Visible: "GPU-a,GPU-b", Requested: gpus, Nodes: []string{"/dev/nvidia1", "/dev/nvidia0"}}
	for name, tc := range map[string]struct {
		gpus   []string
		attach Attach
		got    Attachment
		nodes  []string
		ok     bool
	}{
		"right":             {gpus, AttachCDI, good, nodes, true},
		"ended":             {gpus, AttachCDI, Attachment{Visible: "GPU-a,GPU-b"}, nodes, true},
		"nodes not known":   {gpus, AttachRuntime, good, nil, true},
		"other visible":     {gpus, AttachRuntime, Attachment{Visible: "all", Nodes: nodes}, nodes, false},
		"other requested":   {gpus, AttachDeviceRequest, Attachment{Visible: "GPU-a,GPU-b", Requested: []string{"GPU-a"}}, nil, false},
		"a node too many":   {gpus, AttachCDI, Attachment{Visible: "GPU-a,GPU-b", Nodes: append(slices.Clone(nodes), "/dev/nvidia2")}, nodes, false},
		"no nodes":          {gpus, AttachRuntime, Attachment{Visible: "GPU-a,GPU-b", Nodes: []string{}}, nodes, false},
		"simulated":         {gpus, AttachSimulated, Attachment{Visible: "GPU-a,GPU-b", Nodes: []string{}}, nodes, true},
		"none":              {nil, AttachCDI, Attachment{Visible: "void"}, nil, true},
		"none, but visible": {nil, AttachCDI, Attachment{Visible: "all"}, nil, false},
	} {
		err := CheckGPUs(Spec{GPUs: tc.gpus, Attach: tc.attach}, tc.got, tc.nodes)
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrWrongGPUs) {
			t.Errorf("%s: %v, want ok: %v", name, err, tc.ok)
		}
	}
}

func TestNodesOf(t *testing.T) {
	driver := fstest.MapFS{
		"0000:3b:00.0/information": {Data: []byte("Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-b\nDevice Minor: \t 1\nGPU Firmware: 	 535.1\n")},
		"0000:af:00.0/information": {Data: []byte("Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-a\nDevice Minor: \t 0\n")},
	}
	if got := nodesOf(driver, []string{"GPU-b", "GPU-a"}); !slices.Equal(got, []string{"/dev/nvidia0", "/dev/nvidia1"}) {
		t.Errorf("nodes %q", got)
	}
	if got := nodesOf(driver, []string{"GPU-a", "MIG-x"}); got != nil {
		t.Errorf("nodes %q of a GPU the driver does not know", got)
	}
	if got := OnlyGPUNodes([]string{"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia12", "/x/nvidia3"}); !slices.Equal(got, []string{"/dev/nvidia0", "/dev/nvidia12"}) {
		t.Errorf("%q", got)
	}
}
