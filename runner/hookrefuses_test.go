package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
)

// toolkit is an engine with NVIDIA's runtime.
type toolkit struct{ *containerstest.Fake }

func (toolkit) Ping(context.Context) (containers.Engine, error) {
	return containers.Engine{Version: "29", Runtimes: []string{"nvidia", "runc"}}, nil
}

// TestHookThatRefuses: NVIDIA's hook refuses device requests if its toolkit is set to CDI. The
// next attempt and all later ones use the nvidia runtime.
func TestHookThatRefuses(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "nvidia-container-runtime-hook"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
	g := newRig(t, func(g *rig) {
		g.opt.Attach = ""
		g.driver = toolkit{g.engine}
	})
	g.script("train", printing(0))
	mode := func() containers.Attach { m, _, _ := g.attaching.Mode(); return m }
	if mode() != containers.AttachDeviceRequest {
		t.Fatalf("at first: %s", mode())
	}
	g.engine.FailNext(containerstest.OpStart, fmt.Errorf("start container: %w", containers.ReadStartFault("OCI runtime create failed: error running prestart hook #0: exit status 1, stderr: invoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus flag) is not supported. Please use the NVIDIA Container Runtime (e.g. specify the --runtime=nvidia flag) instead")))
	ref := g.run(api.Submit{Image: "train", Mem: 1 << 30})
	task := g.finished(ref)
	if task.Phase != "succeeded" || len(task.Attempts) != 2 {
		t.Errorf("%s after %+v", task.Phase, task.Attempts)
	}
	if mode() != containers.AttachRuntime {
		t.Errorf("then: %s", mode())
	}
}
