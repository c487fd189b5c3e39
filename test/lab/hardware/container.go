package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/containers/bare"
	"carma/containers/cdi"
)

// mounts returns the folders of this machine that a task gets, read-only: the system's, and the
// folders of the Python with PyTorch.
func (s *session) mounts() (args []string) {
	tops := bare.Folders()
	for _, dir := range slices.Concat(s.plan.folders, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))) {
		inside := slices.ContainsFunc(tops, func(top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") })
		if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" && !inside {
			tops = append(tops, filepath.Clean(dir))
		}
	}
	for _, dir := range tops {
		if exists(dir) {
			args = append(args, "-v", dir+":"+dir+":ro")
		}
	}
	return append(args, "-v", s.training+":/carma:ro", "-v", filepath.Join(s.work, "tmp")+":/tmp")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// cdiSpec returns a CDI file with the device nodes of one card. It needs no libraries, because
// the tasks have the machine's own.
func cdiSpec(uuid string, minor int) ([]byte, error) {
	type node struct {
		Path string `json:"path"`
	}
	list := []node{{fmt.Sprintf("/dev/nvidia%d", minor)}}
	for _, path := range bare.Nodes() {
		list = append(list, node{path})
	}
	return json.MarshalIndent(map[string]any{
		"cdiVersion": "0.5.0",
		"kind":       cdi.Kind,
		"devices":    []any{map[string]any{"name": uuid, "containerEdits": map[string]any{"deviceNodes": list}}},
	}, "", "  ")
}

// wakeCUDA runs a CUDA process if /dev/nvidia-uvm is missing. Many machines make
// that node for the first CUDA process, and a CDI file written earlier would lack
// it.
func (s *session) wakeCUDA(ctx context.Context) {
	const node = "/dev/nvidia-uvm"
	if exists(node) || s.python == "" {
		return
	}
	out, err := s.inPython(ctx, "-c", "import torch; torch.zeros(1, device='cuda')").CombinedOutput()
	switch {
	case err != nil:
		s.say("no %s, and no CUDA process makes it: %v: %s", node, err, lastLine(string(out)))
	case !exists(node):
		s.say("no %s, though CUDA runs: tasks in containers will not find it; nvidia-modprobe -u makes it", node)
	}
}

// describeCard writes a CDI file if the machine has none for the card; undo
// removes it. Only containerd uses it.
func (s *session) describeCard(ctx context.Context) (undo func(), err error) {
	undo = func() {}
	if s.card == nil {
		return undo, nil
	}
	s.wakeCUDA(ctx)
	uuid := s.card.device.UUID
	files, err := cdi.Read(nil)
	if err != nil {
		return undo, err
	}
	if files.Missing([]string{uuid}) == nil {
		return undo, nil
	}
	if s.card.device.Parent != "" {
		return undo, errors.New("a MIG instance has no CDI file; make one with nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
	}
	n, err := minorOf(uuid)
	if err != nil {
		return undo, err
	}
	content, err := cdiSpec(uuid, n)
	if err != nil {
		return undo, err
	}
	path := filepath.Join(cdi.Dirs[len(cdi.Dirs)-1], "carma-hardware.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return undo, err
	}
	return func() { _ = os.Remove(path) }, os.WriteFile(path, content, 0o644)
}
