package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"carma/containers/cdi"
	"carma/containers/containerstest"
	engines "carma/containers/containerstest/engine"
)

// imageName is the suite's image: the simulated task and nothing else. A real
// task has the machine's own system folders mounted into it, read-only.
const imageName = "carma/hardware:latest"

// engine is what runs the containers.
type engine struct {
	name  string
	args  []string // of the daemon
	load  func(ctx context.Context, archive string) error
	close func()
}

// openEngine starts a containerd of the suite's own, or takes the machine's
// Docker, and imports the image. The error says why neither runs.
func (s *session) openEngine(ctx context.Context) (*engine, error) {
	if s.noContainers {
		return nil, omitf("--no-containers")
	}
	openers := map[string]func(context.Context) (*engine, error){"containerd": s.openContainerd, "docker": s.openDocker}
	names := []string{"containerd", "docker"}
	if s.options.engine != "auto" {
		names = []string{s.options.engine}
	}
	var why []string
	for _, name := range names {
		e, err := openers[name](ctx)
		if err == nil {
			if err = s.importImage(ctx, e); err == nil {
				return e, nil
			}
			e.close()
		}
		s.say("%s: %v", name, err)
		why = append(why, fmt.Sprintf("%s: %v", name, err))
	}
	return nil, omitf("no container engine: %s", strings.Join(why, "; "))
}

// openContainerd starts a containerd with folders of its own.
func (s *session) openContainerd(ctx context.Context) (*engine, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("needs root")
	}
	if cgroups() == "none mounted" {
		return nil, errors.New("no control groups are mounted at /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup")
	}
	if out, err := exec.CommandContext(ctx, "runc", "--version").CombinedOutput(); err != nil { // it needs the machine's libseccomp
		return nil, fmt.Errorf("runc: %w: %s", err, lastLine(string(out)))
	}
	root := filepath.Join(s.work, "c")
	undo, err := overlayable(root)
	if err != nil {
		return nil, err
	}
	c, err := engines.NewContainerd(root)
	if err != nil {
		undo()
		return nil, err
	}
	args := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	return &engine{
		name: "containerd",
		args: args,
		load: func(ctx context.Context, archive string) error {
			_, err := s.carmaOutput(ctx, append([]string{"image", "import", archive}, args...)...)
			return err
		},
		close: func() {
			if s.report.failed() {
				s.say("containerd's log has %s", complaints(c.Log()))
			}
			_ = c.Close()
			undo()
		},
	}, nil
}

// complaints are the lines of a log that are more than information.
func complaints(log string) string {
	var lines []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=") && !strings.Contains(line, "level=info") {
			lines = append(lines, line)
		}
	}
	return fmt.Sprintf("%d warnings and errors\n%s", len(lines), strings.Join(lines, ""))
}

// overlayable makes a folder in which overlay file systems can be made: on a
// tmpfs where the folder's own file system does not do, as in a container.
func overlayable(root string) (undo func(), err error) {
	undo = func() {}
	for _, dir := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(filepath.Join(root, "try", dir), 0o755); err != nil {
			return undo, err
		}
	}
	at := func(name string) string { return filepath.Join(root, "try", name) }
	err = unix.Mount("overlay", at("merged"), "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", at("lower"), at("upper"), at("work")))
	if err == nil {
		return undo, errors.Join(unix.Unmount(at("merged"), 0), os.RemoveAll(filepath.Join(root, "try")))
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
		return undo, fmt.Errorf("neither an overlay file system nor a tmpfs can be mounted here: %w", err)
	}
	return func() { _ = unix.Unmount(root, unix.MNT_DETACH) }, nil
}

func (s *session) openDocker(ctx context.Context) (*engine, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{.ServerVersion}}").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("docker info: %w: %s", err, lastLine(string(out)))
	}
	load := func(ctx context.Context, archive string) error {
		out, err := exec.CommandContext(ctx, "docker", "load", "-i", archive).CombinedOutput()
		if err != nil {
			return fmt.Errorf("docker load: %w: %s", err, lastLine(string(out)))
		}
		return nil
	}
	unload := func() { _ = exec.Command("docker", "image", "rm", imageName).Run() }
	return &engine{name: "docker", args: []string{"--driver", "docker"}, load: load, close: unload}, nil
}

func (s *session) importImage(ctx context.Context, e *engine) error {
	program, err := os.ReadFile(filepath.Join(s.bin, "simtask"))
	if err != nil {
		return err
	}
	tar, err := containerstest.Archive(imageName, "/simtask", program, containerstest.ImageConfig{Entrypoint: []string{"/simtask"}})
	if err != nil {
		return err
	}
	path := filepath.Join(s.work, "image.tar")
	if err := os.WriteFile(path, tar, 0o644); err != nil {
		return err
	}
	return e.load(ctx, path)
}

// systemFolders hold programs and libraries.
var systemFolders = []string{"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt"}

// mounts are the folders of this machine that a task gets: the system's and
// those of the Python with PyTorch, read-only.
func (s *session) mounts() (args []string) {
	tops := slices.Clone(systemFolders)
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

// nodes are the device nodes that all NVIDIA GPUs share.
var nodes = []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}

// cdiSpec is a CDI file for one card: its device nodes. Libraries need none, as
// the tasks have the machine's own.
func cdiSpec(uuid string, minor int) ([]byte, error) {
	type node struct {
		Path string `json:"path"`
	}
	list := []node{{fmt.Sprintf("/dev/nvidia%d", minor)}}
	for _, path := range nodes {
		if exists(path) {
			list = append(list, node{path})
		}
	}
	return json.MarshalIndent(map[string]any{
		"cdiVersion": "0.5.0",
		"kind":       cdi.Kind,
		"devices":    []any{map[string]any{"name": uuid, "containerEdits": map[string]any{"deviceNodes": list}}},
	}, "", "  ")
}

// describeCard writes a CDI file where the machine has none for the card; undo
// takes it away. Only containerd goes by it.
func (s *session) describeCard() (undo func(), err error) {
	undo = func() {}
	if s.card == nil {
		return undo, nil
	}
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
