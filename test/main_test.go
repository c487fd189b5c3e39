//go:build e2e

package test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

var (
	carma string // path of the binary
	image = cmp.Or(os.Getenv("TEST_IMAGE"), "carma/simtask:latest")
	// tool is an image with the program of carma/containers/containerstest. Its
	// arguments say what it prints, what it waits for and how it ends.
	tool = fmt.Sprintf("carma-e2e-tool:%d", os.Getpid())
	// engine watches the engine of almost all tests.
	engine *watcher
	// scratch is a folder for all tests.
	scratch string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if order := os.Getenv(crowdEnv); order != "" {
		if err := inCrowd(order); err != nil {
			fmt.Fprintln(os.Stderr, "one of a crowd:", err)
			return 1
		}
		return 0
	}
	for _, kv := range os.Environ() { // without anybody's settings
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "CARMA_") {
			_ = os.Unsetenv(name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := setUp(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		return 1
	}
	defer tearDown()
	return m.Run()
}

func setUp(ctx context.Context) (err error) {
	if scratch, err = os.MkdirTemp("", "carma-e2e"); err != nil {
		return err
	}
	if carma = os.Getenv("TEST_CARMA"); carma == "" {
		if carma, err = build("carma", "carma/cmd/carma"); err != nil {
			return err
		}
	}
	if _, err := build("carma-init", "carma/cmd/carma-init"); err != nil { // beside the carma that is built here
		return err
	}
	program, err := build("tool", "carma/containers/containerstest/tool")
	if err != nil {
		return err
	}
	if engine, err = watch(ctx, ""); err != nil {
		return fmt.Errorf("they need a Docker engine: make engine, or set DOCKER_HOST: %w", err)
	}
	if _, err := engine.cli.ImageInspect(ctx, image); err != nil {
		return fmt.Errorf("they need the image %s: make image: %w", image, err)
	}
	return engine.importProgram(ctx, program, "/tool", tool)
}

func tearDown() {
	if engine != nil {
		_, _ = engine.cli.ImageRemove(context.Background(), tool, client.ImageRemoveOptions{Force: true})
	}
	_ = os.RemoveAll(scratch)
}

// build compiles a command into the scratch folder.
func build(name, pkg string, flags ...string) (string, error) {
	path := filepath.Join(scratch, name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), pkg)...)
	if len(flags) == 0 { // static, for an image without a base
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// carmaWithRace is carma built with the race detector.
var carmaWithRace = sync.OnceValues(func() (string, error) { return build("carma-race", "carma/cmd/carma", "-race") })

// importProgram makes an image of one static program, with links, by their paths.
func (w *watcher) importProgram(ctx context.Context, path, entrypoint, ref string, links ...[2]string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	header := &tar.Header{Name: strings.TrimPrefix(entrypoint, "/"), Mode: 0o755, Size: int64(len(program))}
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	if _, err := tw.Write(program); err != nil {
		return err
	}
	for _, l := range links {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(l[0], "/"), Linkname: l[1], Mode: 0o777}); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	res, err := w.cli.ImageImport(ctx, client.ImageImportSource{Source: &layer, SourceName: "-"}, ref,
		client.ImageImportOptions{Changes: []string{fmt.Sprintf("ENTRYPOINT [%q]", entrypoint)}})
	if err != nil {
		return err
	}
	defer func() { _ = res.Close() }()
	_, err = io.Copy(io.Discard, res)
	return err
}
