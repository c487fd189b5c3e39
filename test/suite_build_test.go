//go:build e2e

package test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"

	"github.com/moby/moby/client"

	"carma/runner/api"
)

// TestSuiteBuilds: an image is built from a folder, without the files in
// .dockerignore. A second up does not build it again. Missing folders of the host
// are made.
func TestSuiteBuilds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	if err := os.MkdirAll(filepath.Join(s.root, "ctx"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("ctx/greeting", "hello")
	s.write("ctx/secret", "no")
	s.write("ctx/.dockerignore", "secret\n")
	name := "carma-e2e-built-" + filepath.Base(s.root)
	file := s.write("build.yaml", fmt.Sprintf(`name: %s
services:
  train:
    build:
      context: ctx
      args: {WHO: world}
      dockerfile_inline: |
        FROM %s
        ARG WHO
        COPY . /here
        ENV WHO=$$WHO
    command: ["env:WHO"]
    volumes: ["./results:/results"]
    gpus: [{count: 1}]
    x-carma: {mem: 1G}
`, strings.ToLower(name), tool))
	built := strings.ToLower(name) + "-train"
	t.Cleanup(func() {
		_, _ = engine.cli.ImageRemove(context.Background(), built, client.ImageRemoveOptions{Force: true})
	})
	r := s.carma("suite", "up", file)
	if r.code != 0 || !strings.Contains(r.out, "| WHO=world\n") || !strings.Contains(r.err, "building "+built) || !strings.Contains(r.err, "made the folder "+filepath.Join(s.root, "results")) {
		t.Fatal(r)
	}
	if r := s.carma("suite", "up", file); r.code != 0 || strings.Contains(r.err, "building") {
		t.Error(r)
	}
	if names := engine.filesOf(t, built, "/here"); !slices.Equal(names, []string{".carma.Dockerfile", ".dockerignore", "greeting"}) {
		t.Errorf("the image has %q", names)
	}
	task := s.inspect(strings.ToLower(name) + "-train")
	if task.Submit.Mounts[0] != (api.Mount{Source: filepath.Join(s.root, "results"), Target: "/results"}) || task.Need != int64(units.GiB) {
		t.Errorf("%+v", task.Submit)
	}
}

// filesOf lists the files of an image in a folder.
func (w *watcher) filesOf(t *testing.T, ref, folder string) (names []string) {
	t.Helper()
	made, err := w.cli.ContainerCreate(t.Context(), client.ContainerCreateOptions{Image: ref})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = w.cli.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{}) }()
	content, err := w.cli.CopyFromContainer(t.Context(), made.ID, client.CopyFromContainerOptions{SourcePath: folder})
	if err != nil {
		t.Fatal(err)
	}
	defer content.Content.Close()
	for r := tar.NewReader(content.Content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			names = append(names, filepath.Base(h.Name))
		}
	}
}
