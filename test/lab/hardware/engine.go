package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"carma/containers/containerstest"
	engines "carma/containers/containerstest/engine"
)

// imageName is the suite's image. It has only the simulated task. A real task has
// the machine's own system folders mounted into it, read-only.
const imageName = "carma/hardware:latest"

// engine is the engine that runs the containers.
type engine struct {
	name  string
	args  []string // arguments for the daemon
	load  func(ctx context.Context, archive string) error
	close func()
}

// openEngine starts a containerd for the suite, or takes the machine's Docker,
// and imports the image. The error says why neither runs: a phase that was asked for and
// needs containers has failed then.
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
	return nil, fmt.Errorf("no container engine: %s; --no-containers leaves out what needs one", strings.Join(why, "; "))
}

// openContainerd starts a containerd with folders of its own.
func (s *session) openContainerd(ctx context.Context) (*engine, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("needs root")
	}
	ungroup, err := s.controlGroups()
	if err != nil {
		return nil, err
	}
	e, err := s.ownContainerd(ctx)
	if err != nil {
		ungroup()
		return nil, err
	}
	end := e.close
	e.close = func() { end(); ungroup() }
	return e, nil
}

// ownContainerd starts a containerd on a machine that has control groups.
func (s *session) ownContainerd(ctx context.Context) (*engine, error) {
	if out, err := exec.CommandContext(ctx, "runc", "--version").CombinedOutput(); err != nil { // runc needs the machine's libseccomp
		return nil, fmt.Errorf("runc: %w: %s", err, lastLine(string(out)))
	}
	root := filepath.Join(s.work, "c")
	undo, err := s.overlayable(root)
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
			fmt.Fprintf(s.file, "--- containerd's log has %s--- end of it\n", complaints(c.Log()))
			_ = c.Close()
			undo()
		},
	}, nil
}

// complaints returns the lines of a log above level info.
func complaints(log string) string {
	var lines []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=") && !strings.Contains(line, "level=info") {
			lines = append(lines, line)
		}
	}
	return fmt.Sprintf("%d warnings and errors\n%s", len(lines), strings.Join(lines, ""))
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
