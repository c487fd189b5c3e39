package containerstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/containers"
)

func testDefaults(_ *testing.T, s *suite) {
	s.equal("default command", s.output(s.spec()), []string{"default"})
	s.equal("defaults", s.output(s.spec("env:IMAGE", "dir", "user")),
		[]string{ToolEnv, ToolWorkDir, s.imageUser()})
}

// imageUser returns the user of a container whose spec names none.
func (s *suite) imageUser() string {
	if user, _, _ := strings.Cut(ToolUser, ":"); s.img.Lacks.Group {
		return user + ":0"
	}
	return ToolUser
}

func testOverrides(_ *testing.T, s *suite) {
	spec := s.spec("out:two words", "env:A", "env:IMAGE", "dir", "user")
	spec.Entrypoint = []string{ToolPath, "out:one"}
	spec.Env = []string{"A=1=2", "IMAGE=no"}
	spec.WorkDir = "/somewhere/else"
	spec.User = "4321:8765"
	spec.NoNewPrivileges = true
	spec.ShmSize = 1 << 26
	s.equal("overrides", s.output(spec),
		[]string{"one", "two words", "A=1=2", "IMAGE=no", "/somewhere/else", "4321:8765"})

	spec = s.spec("processors")
	spec.CPUSet, spec.CPUs, spec.CPUWeight = "1", 0.5, 500
	s.equal("one processor", s.output(spec), []string{"1"})

	spec = s.spec()
	spec.Command = nil
	spec.Entrypoint = []string{ToolPath, "out:alone"}
	s.equal("entrypoint without the image's command", s.output(spec), []string{"alone"})
}

func testMounts(t *testing.T, s *suite) {
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "in"), []byte("from the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := s.spec("read:/data/in", "write:/data/new", "read:/file", "write:/ro/refused", "read:/ro/in")
	spec.User = "0:0" // root may write everywhere except on a read-only mount
	spec.Mounts = []containers.Mount{
		{Source: folder, Target: "/data"},
		{Source: folder, Target: "/ro", ReadOnly: true},
		{Source: filepath.Join(folder, "in"), Target: "/file", ReadOnly: true},
	}
	s.equal("output", s.output(spec),
		[]string{"from the host", "written", "from the host", "refused", "from the host"})
	if b, err := os.ReadFile(filepath.Join(folder, "new")); err != nil || string(b) != "written" {
		t.Errorf("file written by the container: %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "refused")); err == nil {
		t.Error("a read-only mount was written to")
	}
}

func testVisibleGPUs(_ *testing.T, s *suite) {
	if s.img.Lacks.GPUs {
		s.Skip("the engine under test has no GPUs")
	}
	const key = "NVIDIA_VISIBLE_DEVICES"
	spec := s.spec("env:"+key, "env:OTHER")
	spec.Attach = containers.AttachSimulated
	spec.GPUs = []string{"GPU-1", "GPU-2"}
	spec.Env = []string{key + "=all", "OTHER=1"} // a task cannot grant itself GPUs
	s.equal("granted", s.output(spec), []string{key + "=GPU-1,GPU-2", "OTHER=1"})

	seen := s.spec("block:0")
	seen.Attach, seen.GPUs = spec.Attach, spec.GPUs
	id := s.startSpec(seen)
	got, err := s.d.Attached(s.ctx, id)
	if err == nil {
		err = containers.CheckGPUs(seen, got, nil)
	}
	if err != nil {
		s.Errorf("attached %+v: %v", got, err)
	}

	spec = s.spec("env:" + key)
	spec.Attach = containers.AttachSimulated
	spec.Env = []string{key + "=all"}
	s.equal("none", s.output(spec), []string{key + "=void"})
}

func testSandbox(t *testing.T, s *suite) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "in"), []byte("from the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	const scratch = containers.ScratchDir
	spec := s.spec("interfaces", "capabilities", "write:/new", "write:"+scratch+"/new", "read:"+scratch+"/new", "read:/file", "write:/file", "look:address")
	spec.User = "0:0"
	spec.NoNewPrivileges = true
	spec.Mounts = []containers.Mount{{Source: filepath.Join(folder, "in"), Target: "/file", ReadOnly: true}}
	spec.Sandbox = &containers.Sandbox{Memory: 128 << 20, CPUs: 0.5, Processes: 32, Scratch: 1 << 20}
	s.equal("output", s.output(spec),
		[]string{"lo", "0000000000000000", "refused", "written", "written", "from the host", "refused", "loopback"})
}
