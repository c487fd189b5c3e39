package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	a = "4f9c1d2e3b4a5968778695a4b3c2d1e0f1e2d3c4b5a69788796a5b4c3d2e1f00"
	b = "0011223344556677889900aabbccddeeff0011223344556677889900aabbccdd"
)

// version1 returns the file of a process that an engine put at a path in every
// hierarchy it uses.
func version1(path string) string {
	return strings.ReplaceAll(`13:misc:/
12:rdma:/
11:hugetlb:PATH
10:net_cls,net_prio:PATH
9:devices:PATH
8:cpu,cpuacct:PATH
7:blkio:PATH
6:pids:PATH
5:memory:PATH
4:freezer:PATH
3:cpuset:PATH
2:perf_event:PATH
1:name=systemd:PATH
0::/system.slice/containerd.service
`, "PATH", path)
}

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"nothing":                            {"", nil},
		"the root":                           {"0::/\n", nil},
		"no container":                       {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-terminal.scope\n", nil},
		"a service":                          {"0::/system.slice/docker.service\n", nil},
		"an engine's own":                    {"0::/system.slice/containerd.service\n", nil},
		"no container, version 1":            {version1("/user.slice"), nil},
		"Docker, systemd":                    {"0::/system.slice/docker-" + a + ".scope\n", []string{a}},
		"Docker, systemd, version 1":         {version1("/system.slice/docker-" + a + ".scope"), []string{a}},
		"Docker, cgroupfs":                   {"0::/docker/" + a + "\n", []string{a}},
		"Docker, cgroupfs, version 1":        {version1("/docker/" + a), []string{a}},
		"Docker, both versions":              {"1:name=systemd:/docker/" + a + "\n0::/system.slice/docker.service\n", []string{a}},
		"Docker, with a cgroup parent":       {"0::/lab/train/" + a + "\n", []string{a}},
		"Docker, a slice as parent":          {"0::/carma.slice/docker-" + a + ".scope\n", []string{a}},
		"Docker, an init of its own":         {"0::/docker/" + a + "/init\n", []string{a}},
		"Docker, rootless":                   {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + a + ".scope\n", []string{a}},
		"Docker in a namespace of its own":   {"0::/../docker-" + a + ".scope\n", []string{a}},
		"Docker in Docker":                   {"0::/docker/" + a + "/docker/" + b + "\n", []string{b, a}},
		"Docker in Docker, systemd":          {"0::/system.slice/docker-" + a + ".scope/system.slice/docker-" + b + ".scope\n", []string{b, a}},
		"systemd in a container":             {"0::/docker/" + a + "/system.slice/ssh.service\n", []string{a}},
		"containerd, carma's namespace":      {"0::/carma/carma-1f2e3d4c-17-1\n", []string{"carma-1f2e3d4c-17-1"}},
		"containerd, version 1":              {version1("/carma/carma-1f2e3d4c-17-1"), []string{"carma-1f2e3d4c-17-1"}},
		"containerd, default namespace":      {"0::/default/web\n", []string{"web"}},
		"containerd, nested in Docker":       {"0::/docker/" + a + "/carma/carma-1f2e3d4c-17-1\n", []string{"carma-1f2e3d4c-17-1", a}},
		"containerd, a child of its own":     {"0::/carma/carma-1f2e3d4c-17-1/worker\n", []string{"carma-1f2e3d4c-17-1"}},
		"containerd, systemd":                {"0::/system.slice/system.slice:carma:carma-1f2e3d4c-17-1\n", []string{"carma-1f2e3d4c-17-1"}},
		"containerd, systemd scope":          {"0::/system.slice/containerd-carma-1-17-1.scope\n", []string{"carma-1-17-1"}},
		"nerdctl":                            {"0::/system.slice/nerdctl-" + a + ".scope\n", []string{a}},
		"Kubernetes, containerd, systemd":    {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice/cri-containerd-" + a + ".scope\n", []string{a}},
		"Kubernetes, containerd, cgroupfs":   {"0::/kubepods/besteffort/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/" + a + "\n", []string{a}},
		"Kubernetes, slice and colon":        {"0::/system.slice/kubepods-pod0a1b.slice:cri-containerd:" + a + "\n", []string{a}},
		"Kubernetes, CRI-O":                  {"0::/kubepods.slice/kubepods-pod0a1b.slice/crio-" + a + ".scope\n", []string{a}},
		"CRI-O's monitor":                    {"0::/kubepods.slice/kubepods-pod0a1b.slice/crio-conmon-" + a + ".scope\n", nil},
		"Podman":                             {"0::/machine.slice/libpod-" + a + ".scope\n", []string{a}},
		"Podman, a container below":          {"0::/machine.slice/libpod-" + a + ".scope/container\n", []string{a}},
		"Podman, rootless":                   {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + a + ".scope/container\n", []string{a}},
		"Podman, cgroupfs":                   {"0::/libpod_parent/libpod-" + a + "\n", []string{a}},
		"Podman's monitor":                   {"0::/machine.slice/libpod-conmon-" + a + ".scope\n", nil},
		"a pod's slice":                      {"0::/docker/docker.slice\n", nil},
		"a path with a colon":                {"0::/lab:a/docker-" + a + ".scope\n", []string{a}},
		"almost an id":                       {"0::/lab/" + a[1:] + "\n", nil},
		"an id in capitals":                  {"0::/lab/" + strings.ToUpper(a) + "\n", nil},
		"lines of something else":            {"hello\n1\n:\n::\n0:\x00:\n", nil},
		"hierarchies of different depth":     {"2:cpu:/docker/" + a + "\n1:name=systemd:/docker/" + a + "/docker/" + b + "\n", []string{b, a}},
		"the same container named two times": {"0::/docker/" + a + "/docker-" + a + ".scope\n", []string{a}},
	} {
		got, err := Parse(strings.NewReader(tt.file))
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

func TestContainers(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "proc", "42")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/docker/"+a+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Containers(root, 42); err != nil || !slices.Equal(got, []string{a}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, pid := range []int{43, 0, -1, 1 << 40} {
		if got, err := Containers(root, pid); !errors.Is(err, os.ErrNotExist) || got != nil {
			t.Errorf("process %d: %q, %v", pid, got, err)
		}
	}
	// Of a file that is too long, only the beginning is read.
	if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte(strings.Repeat("0::/docker/"+a+"\n", maxFile/64)+"0::/docker/"+a+"/docker/"+b+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Containers(root, 42); err != nil || !slices.Equal(got, []string{a}) {
		t.Errorf("long file: %q, %v", got, err)
	}
}

// TestRealProc: the kernel's own files can be read.
func TestRealProc(t *testing.T) {
	if _, err := Containers("/", os.Getpid()); err != nil {
		t.Error(err)
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	if _, err := Containers("/", cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that has ended: %v", err)
	}
}

func TestSeesHost(t *testing.T) {
	root := t.TempDir()
	if !SeesHost(root) {
		t.Error("nothing is known, and it says no")
	}
	dir := filepath.Join(root, "proc", "self", "ns")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		link := filepath.Join(dir, "pid")
		os.Remove(link)
		if err := os.Symlink("pid:["+strconv.Itoa(4026531836+i)+"]", link); err != nil {
			t.Fatal(err)
		}
		if got := SeesHost(root); got != want {
			t.Errorf("namespace %d: %v", i, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0::/docker/" + a + "/docker/" + b + "\n")
	f.Add(version1("/system.slice/docker-" + a + ".scope"))
	f.Add("0::/system.slice/kubepods-pod0a1b.slice:cri-containerd:" + a + "\n")
	f.Add("0::/carma/carma-1f2e3d4c-17-1\n0::/_libpod-x.scope")
	f.Fuzz(func(t *testing.T, file string) {
		ids, err := Parse(strings.NewReader(file))
		if err != nil && ids != nil {
			t.Fatalf("%q with an error: %v", ids, err)
		}
		for i, id := range ids {
			if id == "" || strings.Contains(id, "/") || !strings.Contains(file, id) {
				t.Fatalf("%q names container %q", file, id)
			}
			if i > 0 && ids[i-1] == id {
				t.Fatalf("%q names %q twice", file, id)
			}
		}
	})
}
