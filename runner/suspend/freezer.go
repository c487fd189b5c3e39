package suspend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"carma/runner/gpu/cgroup"
)

// CgroupFreezer freezes containers by their control groups, of version 1 or 2, as engines
// do for `docker pause`. The engine is not informed, and shows the container as running.
// Only root can do this.
type CgroupFreezer struct {
	Root string // folder with /proc and /sys; empty means "/"
}

// freezePoll is the time between two checks of a freezing group. Version 2 can send
// notifications (cgroup.events), version 1 cannot.
const freezePoll = 5 * time.Millisecond

// Freeze implements [Freezer].
func (f CgroupFreezer) Freeze(ctx context.Context, c Container) error { return f.set(ctx, c, true) }

// Thaw implements [Freezer].
func (f CgroupFreezer) Thaw(ctx context.Context, c Container) error { return f.set(ctx, c, false) }

// Frozen implements [Freezer].
func (f CgroupFreezer) Frozen(_ context.Context, c Container) (bool, error) {
	g, err := f.group(c)
	if err != nil || g.dir == "" {
		return false, err
	}
	now, err := g.state()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return false, nil
	}
	return now != thawed, err
}

// freezerGroup is the control group of a container.
type freezerGroup struct {
	dir    string // or "" if the container is gone
	second bool   // version 2
}

// group finds a container's control group by one of its processes.
func (f CgroupFreezer) group(c Container) (freezerGroup, error) {
	root := f.Root
	if root == "" {
		root = "/"
	}
	there := false
	for _, pid := range c.PIDs {
		if dir, second := cgroup.FreezerOf(root, pid, c.ID); dir != "" {
			return freezerGroup{dir, second}, nil
		}
		if _, err := readProcess(root, pid); !errors.Is(err, errEnded) {
			there = true
		}
	}
	if there {
		return freezerGroup{}, fmt.Errorf("no control group of %s that can be frozen", c.ID)
	}
	return freezerGroup{}, nil
}

func (f CgroupFreezer) set(ctx context.Context, c Container, freeze bool) error {
	g, err := f.group(c)
	if err != nil || g.dir == "" {
		return err
	}
	goal := thawed
	if freeze {
		goal = frozen
	}
	for {
		// Version 1 may need another write, because a process that was forked meanwhile
		// keeps the group at FREEZING (kernel, cgroup-v1/freezer-subsystem.rst).
		err := g.write(freeze)
		var now string
		if err == nil {
			now, err = g.state()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENODEV):
			return nil // the container has ended
		case err != nil:
			return err
		case now == goal:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s has not changed: %w", g.dir, ctx.Err())
		case <-time.After(freezePoll):
		}
	}
}

// States of a group, with the names of version 1, which also has FREEZING.
const (
	thawed = "THAWED"
	frozen = "FROZEN"
)

func (g freezerGroup) write(freeze bool) error {
	name, text := "freezer.state", thawed
	switch {
	case freeze && g.second:
		name, text = "cgroup.freeze", "1"
	case g.second:
		name, text = "cgroup.freeze", "0"
	case freeze:
		text = frozen
	}
	file, err := os.OpenFile(filepath.Join(g.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(text)
	return err
}

// state reads the actual state of the group, which lags behind the written one.
func (g freezerGroup) state() (string, error) {
	if !g.second {
		text, err := os.ReadFile(filepath.Join(g.dir, "freezer.state"))
		return strings.TrimSpace(string(text)), err
	}
	text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		switch strings.TrimSpace(line) {
		case "frozen 0":
			return thawed, nil
		case "frozen 1":
			return frozen, nil
		}
	}
	return "", fmt.Errorf("%s/cgroup.events says nothing of frozen", g.dir)
}
