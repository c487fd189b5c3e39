package containerstest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ImageConfig is the part of an image's configuration that tests set.
type ImageConfig struct {
	User       string            `json:"User,omitempty"`
	Env        []string          `json:"Env,omitempty"`
	Entrypoint []string          `json:"Entrypoint,omitempty"`
	Cmd        []string          `json:"Cmd,omitempty"`
	WorkingDir string            `json:"WorkingDir,omitempty"`
	Labels     map[string]string `json:"Labels,omitempty"`
}

// Archive makes a tar file in the format of docker save. The image is named ref and
// contains one static program, at path.
func Archive(ref, path string, program []byte, config ImageConfig) ([]byte, error) {
	layer, err := tarOf(file{strings.TrimPrefix(path, "/"), 0o755, program})
	if err != nil {
		return nil, err
	}
	sum := func(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
	image, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer)}},
	})
	if err != nil {
		return nil, err
	}
	name := sum(image) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{ref}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	return tarOf(file{name, 0o644, image}, file{"layer.tar", 0o644, layer}, file{"manifest.json", 0o644, manifest})
}

type file struct {
	name string
	mode int64
	data []byte
}

func tarOf(files ...file) ([]byte, error) {
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, f := range files {
		if err := tw.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := tw.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := tw.Close()
	return b.Bytes(), err
}

// ToolArchive builds the suite's program and makes the suite's image of it.
func ToolArchive(ref string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "carma-suite")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin := filepath.Join(dir, "tool")
	build := exec.Command("go", "build", "-o", bin, "carma/containers/containerstest/tool")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the suite's program: %w: %s", err, out)
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		return nil, err
	}
	return Archive(ref, ToolPath, program, ImageConfig{
		User: ToolUser, Env: []string{ToolEnv}, Entrypoint: []string{ToolPath}, Cmd: []string{ToolDefault},
		WorkingDir: ToolWorkDir, Labels: map[string]string{ToolLabel: "tool"},
	})
}
