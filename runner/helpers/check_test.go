package helpers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/runner/api"
)

// TestWalls checks that the API refuses options that give a helper access outside its
// container, independent of the checks of the command line.
func TestWalls(t *testing.T) {
	g := newRig(t)
	defer g.kill()
	root := Owner{Name: "root"}
	mounts := []api.Mount{{Source: "/home/ada/data", Target: "/data"}}
	for name, tc := range map[string]struct {
		change func(*api.Suite, *api.Helper)
		want   string
		root   bool // root may
	}{
		"nothing":      {func(*api.Suite, *api.Helper) {}, "", true},
		"other user":   {func(_ *api.Suite, h *api.Helper) { h.Container.Mounts, h.Container.User = mounts, "0" }, "a helper with a folder of the host runs as you, 1000:100", true},
		"own user":     {func(_ *api.Suite, h *api.Helper) { h.Container.Mounts, h.Container.User = mounts, "1000:100" }, "", true},
		"image's user": {func(_ *api.Suite, h *api.Helper) { h.Container.User = "0" }, "", true},
		"groups":       {func(_ *api.Suite, h *api.Helper) { h.Container.Mounts, h.Groups = mounts, []string{"disk"} }, "groups disk", true},
		"low port":     {func(_ *api.Suite, h *api.Helper) { h.Ports = []api.HelperPort{{Container: 80, Host: 80}} }, "port 80: ports below 1024 are root's", true},
		"shared port": {func(_ *api.Suite, h *api.Helper) {
			h.Replicas, h.Ports = 2, []api.HelperPort{{Container: 80, Host: 8080}}
		}, "port 8080: 2 replicas cannot all have it", false},
		"capability":   {func(_ *api.Suite, h *api.Helper) { h.CapAdd = []string{"cap_sys_admin"} }, "capability SYS_ADMIN reaches out", false},
		"sysctl":       {func(_ *api.Suite, h *api.Helper) { h.Sysctls = map[string]string{"vm.max_map_count": "1"} }, "sysctl vm.max_map_count is the whole machine's", false},
		"own sysctl":   {func(_ *api.Suite, h *api.Helper) { h.Sysctls = map[string]string{"net.core.somaxconn": "1"} }, "", true},
		"ulimit":       {func(_ *api.Suite, h *api.Helper) { h.Ulimits = []api.HelperUlimit{{Name: "rtprio"}} }, "limit rtprio cannot be set", false},
		"GPUs":         {func(_ *api.Suite, h *api.Helper) { h.Container.GPUs = 1 }, "gpus is for tasks", false},
		"priority":     {func(_ *api.Suite, h *api.Helper) { h.Container.Priority = "high" }, "priority is for tasks", false},
		"hostname":     {func(_ *api.Suite, h *api.Helper) { h.Hostname = "a b" }, "hostname \"a b\"", false},
		"hosts":        {func(_ *api.Suite, h *api.Helper) { h.Hosts = []string{"a:b\nc:1"} }, "host \"a:b\\nc:1\"", false},
		"network":      {func(_ *api.Suite, h *api.Helper) { h.Networks = []api.NetworkPlace{{Network: "bridge"}} }, "no network bridge in this suite", false},
		"volume":       {func(_ *api.Suite, h *api.Helper) { h.Volumes = []api.VolumePlace{{Volume: "other", Target: "/d"}} }, "no volume other in this suite", false},
		"target":       {func(_ *api.Suite, h *api.Helper) { h.Volumes = []api.VolumePlace{{Volume: "data", Target: "/x/.."}} }, "no folder in the container", false},
		"file":         {func(_ *api.Suite, h *api.Helper) { h.Files = []api.SuiteFile{{Path: "etc/x"}} }, "not the absolute path of a file", false},
		"set-uid file": {func(_ *api.Suite, h *api.Helper) { h.Files = []api.SuiteFile{{Path: "/x", Mode: 0o4755}} }, "mode 4755", false},
		"task's file": {func(s *api.Suite, _ *api.Helper) {
			s.Tasks = map[string]api.Joined{"t": {Files: []api.SuiteFile{{Path: "/m/x"}}, Volumes: []api.VolumePlace{{Volume: "data", Target: "/m"}}}}
		}, "tasks t: file /m/x: its path meets the mount at /m", false},
		"restart": {func(_ *api.Suite, h *api.Helper) { h.Restart = "sometimes" }, "restart \"sometimes\"", false},
		"health":  {func(_ *api.Suite, h *api.Helper) { h.Health = &api.HelperHealth{Test: []string{"curl"}} }, "write CMD, CMD-SHELL or NONE", false},
		"unknown": {func(_ *api.Suite, h *api.Helper) { h.Waits = []api.HelperWait{{Helper: "x", Condition: "ok"}} }, "there is no such helper", false},
		"circle":  {func(_ *api.Suite, h *api.Helper) { h.Waits = []api.HelperWait{{Helper: "tracker", Condition: "ok"}} }, "in a circle", false},
		"name":    {func(_ *api.Suite, h *api.Helper) { h.Name = "../x" }, "helper \"../x\"", false},
		"task's volume": {func(s *api.Suite, _ *api.Helper) {
			s.Tasks = map[string]api.Joined{"t": {Volumes: []api.VolumePlace{{Volume: "x", Target: "/x"}}}}
		}, "tasks t: no volume x", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []Owner{ada, root} {
				s := lab()
				tc.change(&s, &s.Helpers[1])
				err := g.Up(t.Context(), o, "lab", s, nil, true, true)
				if tc.want == "" || o == root && tc.root {
					if err != nil {
						t.Errorf("%s: %v", o.Name, err)
					}
				} else if err == nil || !strings.Contains(err.Error(), tc.want) || status(err) != 422 {
					t.Errorf("%s: %v, want %s", o.Name, err, tc.want)
				}
			}
		})
	}
}

// TestOpenRoot: if everybody can enter the engine's folder, the only allowed helpers are
// root's and helpers that run as their owner.
func TestOpenRoot(t *testing.T) {
	g := newRig(t)
	defer g.kill()
	open := "/tmp"
	shut := t.TempDir()
	if err := os.Chmod(shut, 0o710); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(open); err != nil || info.Mode().Perm()&1 == 0 {
		t.Skip("nobody can enter /tmp")
	}
	mounted := lab()
	for i := range mounted.Helpers {
		mounted.Helpers[i].Container.Mounts = []api.Mount{{Source: "/home/ada", Target: "/data"}}
	}
	for _, tc := range []struct {
		root  string
		o     Owner
		s     api.Suite
		taken bool
	}{{open, ada, lab(), false}, {open, Owner{}, lab(), true}, {open, ada, mounted, true}, {shut, ada, lab(), true}, {filepath.Join(shut, "gone"), ada, lab(), true}, {"", ada, lab(), true}} {
		g.Root = func() string { return tc.root }
		if err := g.Up(t.Context(), tc.o, "lab", tc.s, nil, true, true); (err == nil) != tc.taken {
			t.Errorf("%s, user %d: %v", tc.root, tc.o.UID, err)
		}
	}
}

// TestPowers: a helper runs as its image's users with few capabilities, and with a
// folder of the host as its owner with none.
func TestPowers(t *testing.T) {
	g := newRig(t)
	defer g.kill()
	k := &kept{Owner: ada, Name: "lab", Suite: lab()}
	h := api.Helper{Name: "db", Container: api.Submit{Image: "i", User: "postgres"}, CapDrop: []string{"kill"}, CapAdd: []string{"CAP_IPC_LOCK"}}
	s := g.spec(k, &h, 1)
	want := []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "IPC_LOCK", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"}
	if s.User != "postgres" || !s.Hosted.Reduced || !slices.Equal(s.Hosted.Capabilities, want) || !s.NoNewPrivileges || len(s.GPUs) != 0 || s.Memory == 0 {
		t.Errorf("%+v %+v", s, s.Hosted)
	}
	h.CapDrop = []string{"ALL"}
	if s = g.spec(k, &h, 1); !slices.Equal(s.Hosted.Capabilities, []string{"IPC_LOCK"}) {
		t.Errorf("all dropped: %v", s.Hosted.Capabilities)
	}
	h.Container.Mounts, h.Container.User, h.CapDrop = []api.Mount{{Source: "/home/ada", Target: "/x"}}, "", nil
	if s = g.spec(k, &h, 1); s.User != "1000:100" || !s.Hosted.Reduced || len(s.Hosted.Capabilities) != 0 {
		t.Errorf("with a folder: %+v %+v", s, s.Hosted)
	}
}
