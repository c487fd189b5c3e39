package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// groupsAt is the folder of the control groups.
const groupsAt = "/sys/fs/cgroup"

// controlGroups mounts the control groups if the machine has not; without them
// runc makes no container. undo unmounts them.
func (s *session) controlGroups() (undo func(), err error) {
	undo = func() {}
	if cgroups() != noGroups {
		return undo, nil
	}
	const by = "mount -t cgroup2 none " + groupsAt
	if err := os.MkdirAll(groupsAt, 0o755); err != nil {
		return undo, fmt.Errorf("no control groups are mounted at %s: %w", groupsAt, err)
	}
	if err := unix.Mount("none", groupsAt, "cgroup2", 0, ""); err != nil {
		return undo, fmt.Errorf("no control groups are mounted at %s, and %s: %w", groupsAt, by, err)
	}
	s.say("no control groups were mounted at %s; mounted for this run: %s", groupsAt, by)
	s.report.Facts = append(s.report.Facts, fact{"control groups for this run", "version 2, mounted by the suite"})
	return func() {
		if err := unix.Unmount(groupsAt, 0); err != nil {
			s.say("umount %s: %v", groupsAt, err)
		}
	}, nil
}

// overlayable makes a folder for overlay file systems. If the folder's own file
// system does not allow them, as in a container, it mounts a tmpfs.
func (s *session) overlayable(root string) (undo func(), err error) {
	undo = func() {}
	first := overlay(root)
	if first == nil {
		return undo, nil
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
		return undo, fmt.Errorf("no overlay file system in %s (%w), nor a tmpfs for one: %w", root, first, err)
	}
	undo = func() { _ = unix.Unmount(root, unix.MNT_DETACH) }
	if err := overlay(root); err != nil {
		undo()
		return func() {}, fmt.Errorf("no overlay file system, neither in %s (%w) nor on a tmpfs (%w); containerd's images need it: modprobe overlay", root, first, err)
	}
	s.say("no overlay file system in %s: %v; containerd works on a tmpfs", root, first)
	return undo, nil
}

// overlay tries an overlay file system in a folder.
func overlay(root string) error {
	try := filepath.Join(root, "try")
	at := func(name string) string { return filepath.Join(try, name) }
	for _, dir := range []string{"lower", "upper", "work", "merged"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", at("merged"), "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", at("lower"), at("upper"), at("work"))); err != nil {
		return errors.Join(err, os.RemoveAll(try))
	}
	return errors.Join(unix.Unmount(at("merged"), 0), os.RemoveAll(try))
}
