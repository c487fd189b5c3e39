//go:build docker

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"carma/containers"
	"carma/containers/containerstest"
)

// toolRef is the suite's image, one per test process.
var toolRef = fmt.Sprintf("carma-suite:%d", os.Getpid())

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cli, err := client.New(client.FromEnv)
	if err == nil {
		_, err = cli.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "the docker tests need an engine: start dockerd, or set DOCKER_HOST: %v\n", err)
		return 1
	}
	if err := importTool(ctx, cli); err != nil {
		fmt.Fprintf(os.Stderr, "import the suite's image: %v\n", err)
		return 1
	}
	if parkFolder, err = os.MkdirTemp("", "carma-hold"); err == nil {
		err = buildInit(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "build carma-init: %v\n", err)
		return 1
	}
	defer func() {
		_ = os.RemoveAll(parkFolder)
		_, _ = cli.ImageRemove(context.Background(), toolRef, client.ImageRemoveOptions{Force: true})
	}()
	return m.Run()
}

// parkFolder has the program carma-init and the driver's folder.
var parkFolder string

func initProgram() string { return filepath.Join(parkFolder, "carma-init") }

func buildInit(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", initProgram(), "carma/cmd/carma-init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// importTool builds the suite's program and makes an image that has nothing else.
func importTool(ctx context.Context, cli *client.Client) error {
	dir, err := os.MkdirTemp("", "carma-suite")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin := filepath.Join(dir, "tool")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "carma/containers/containerstest/tool")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		return err
	}
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	if err := tw.WriteHeader(&tar.Header{Name: "tool", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return err
	}
	if _, err := tw.Write(program); err != nil {
		return err
	}
	if err := tw.Close(); err != nil {
		return err
	}
	res, err := cli.ImageImport(ctx, client.ImageImportSource{Source: &layer, SourceName: "-"}, toolRef,
		client.ImageImportOptions{Changes: []string{
			`ENTRYPOINT ["` + containerstest.ToolPath + `"]`, `CMD ["` + containerstest.ToolDefault + `"]`,
			"ENV " + containerstest.ToolEnv, "WORKDIR " + containerstest.ToolWorkDir,
			"USER " + containerstest.ToolUser, "LABEL " + containerstest.ToolLabel + "=tool",
		}})
	if err != nil {
		return err
	}
	defer func() { _ = res.Close() }()
	_, err = io.Copy(io.Discard, res)
	return err
}

// newDriver uses the network "none": the suite needs no network, and an engine in
// a build machine often has no bridge.
// Ports need one.
func newDriver(t *testing.T, host string) *Driver {
	t.Helper()
	network := "none"
	if strings.HasSuffix(t.Name(), "/publish") {
		network = "bridge"
	}
	d, err := New(Options{Host: host, Network: network, Init: initProgram(), ParkDir: filepath.Join(parkFolder, "dir")})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var suiteImages = containerstest.Images{Tool: toolRef, Missing: "localhost:1/carma/missing:1"}

func asDriver(t *testing.T) containers.Driver {
	d := newDriver(t, "")
	if d.opts.Network == "none" {
		return d
	}
	cli, err := d.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cli.NetworkInspect(t.Context(), "bridge", client.NetworkInspectOptions{}); errdefs.IsNotFound(err) {
		t.Skip("this engine has no bridge")
	}
	return d
}

func TestSuite(t *testing.T) { containerstest.Suite(t, asDriver, suiteImages) }

func TestHostOOM(t *testing.T) { containerstest.HostOOM(t, asDriver, suiteImages) }

func TestMemory(t *testing.T) { containerstest.Memory(t, asDriver, suiteImages) }

func TestProcessors(t *testing.T) { containerstest.Processors(t, asDriver, suiteImages) }

func TestPids(t *testing.T) { containerstest.Pids(t, asDriver, suiteImages) }
