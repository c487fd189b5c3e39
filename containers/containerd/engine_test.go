//go:build containerd

package containerd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/containers/containerstest/engine"
)

// The engine, the image and the folder of all tests.
var (
	daemon  *engine.Containerd
	toolRef = "carma/suite-tool:1"
	logDir  string
	// initProgram is carma-init, built for these tests.
	initProgram string
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == LogCommand { // started by a shim
		syscall.Exit(RunLogger(os.Args[2:])) // os.Exit sleeps for a second under the race detector
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	root, err := os.MkdirTemp("/tmp", "cd")
	if err == nil {
		logDir = filepath.Join(root, "out")
		daemon, err = engine.NewContainerd(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the containerd tests:", err)
		return 1
	}
	defer func() {
		if err := daemon.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	initProgram = filepath.Join(root, "carma-init")
	build := exec.Command("go", "build", "-o", initProgram, "carma/cmd/carma-init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build carma-init: %v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(root, 0o755); err != nil { // every user of a container runs carma-init
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := importTool(); err != nil {
		fmt.Fprintf(os.Stderr, "import the suite's image: %v\n%s\n", err, daemon.Log())
		return 1
	}
	return m.Run()
}

func importTool() error {
	tar, err := containerstest.ToolArchive(toolRef)
	if err != nil {
		return err
	}
	d, err := New(options())
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	names, err := d.Import(ctx, bytes.NewReader(tar))
	if err == nil && (len(names) != 1 || names[0] != toolRef) {
		err = fmt.Errorf("imported %q", names)
	}
	return err
}

func options() Options {
	return Options{Address: daemon.Address(), Dir: logDir, CNIConf: "/none", Init: initProgram}
}

func newDriver(t *testing.T) *Driver {
	t.Helper()
	d, err := New(options())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSuite(t *testing.T) {
	containerstest.Suite(t, func(t *testing.T) containers.Driver { return newDriver(t) },
		containerstest.Images{Tool: toolRef, Missing: "localhost:1/carma/missing:1"})
	if t.Failed() {
		t.Log(daemon.Log())
	}
}
