package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
)

// TestWrongGPUs: if a container got other GPUs than it was given, its task is ended and
// relaunched without being at fault.
func TestWrongGPUs(t *testing.T) {
	g := newRig(t)
	g.engine.Misattach("all")
	g.script("stay", untilStopped)
	ref := g.run(api.Submit{Image: "stay", Mem: 1 << 30})
	first := g.until(ref, "relaunched", func(t api.Task) bool { return len(t.Attempts) > 1 }).Attempts[0]
	if first.Outcome != "infrastructure" || !first.Blameless || !strings.Contains(first.Message, `"all"`) {
		t.Errorf("the first attempt ended as %+v, want an infrastructure failure that names what it saw", first)
	}
	g.engine.Misattach("")
	g.until(ref, "running", func(t api.Task) bool { return t.Phase == "running" })
	if n := len(g.containers()); n != 1 {
		t.Errorf("%d containers, want the one that has its GPUs", n)
	}
}

// TestNoAttachment checks that a task waits with that reason if containers cannot be given
// GPUs.
func TestNoAttachment(t *testing.T) {
	g := newRig(t, func(g *rig) { g.opt.Attach = "" })
	g.script("done", printing(0))
	ref := g.run(api.Submit{Image: "done", Mem: 1 << 30})
	first := g.until(ref, "relaunched", func(t api.Task) bool { return len(t.Attempts) > 0 && t.Attempts[0].Outcome != "" }).Attempts[0]
	if first.Outcome != "infrastructure" || !strings.Contains(first.Message, "NVIDIA Container Toolkit") {
		t.Errorf("the first attempt ended as %+v, want a hint what to install", first)
	}
	if _, _, err := g.attaching.Mode(); err == nil {
		t.Error("an attachment was found")
	}
}

// TestAttachForced checks that a configured attachment is used without a check.
func TestAttachForced(t *testing.T) {
	dir := t.TempDir()
	g := newRig(t, func(g *rig) { g.opt.Attach, g.driver = "cdi", withCDI{g.engine, dir} })
	if mode, why, err := g.attaching.Mode(); err != nil || mode != "cdi" || why != "as configured" {
		t.Errorf("attach = %s, %q, %v", mode, why, err)
	}
	file := `{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[{"name":"GPU-0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"},{"path":"/dev/nvidia-caps/1"}]}}]}`
	if err := os.WriteFile(filepath.Join(dir, "n.json"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := g.attaching.Nodes("cdi", []string{"GPU-0"}); len(got) != 1 || got[0] != "/dev/nvidia0" {
		t.Errorf("nodes %q", got)
	}
}

// withCDI is an engine that reads CDI files in a folder.
type withCDI struct {
	*containerstest.Fake
	dir string
}

func (d withCDI) Ping(ctx context.Context) (containers.Engine, error) {
	e, err := d.Fake.Ping(ctx)
	e.CDIDirs = []string{d.dir}
	return e, err
}
