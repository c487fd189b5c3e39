package mps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Groups manages the control daemons below one folder. Several processes may use the
// folder, such as the carma daemon and the command carma mps.
type Groups struct {
	// Dir contains a folder for each trust group. Each of these contains a folder for each
	// set of GPUs, with the pipe and log folders of its control daemon.
	Dir string
	// Binary is the control program. Empty means [Binary].
	Binary string
	// Shared puts all users into one trust group. Otherwise each user has one.
	Shared bool

	mu sync.Mutex // one start at a time
}

// Group is one trust group's control daemon for a set of GPUs.
type Group struct {
	Control
	Name string // such as "uid-1000", or "shared"
	UID  int    // or -1 if shared
	GID  int
}

// about is the file that describes the purpose of a folder.
type about struct {
	Name string   `json:"name"`
	UID  int      `json:"uid"`
	GID  int      `json:"gid"`
	GPUs []string `json:"gpus"`
}

const (
	aboutFile = "group.json"
	lockFile  = "lock"
)

// Of returns the group of a user's tasks on a set of GPUs, whether or not its control
// daemon runs.
func (g *Groups) Of(uid, gid int, gpus []string) *Group {
	a := about{Name: "uid-" + strconv.Itoa(uid), UID: uid, GID: gid, GPUs: slices.Sorted(slices.Values(gpus))}
	if g.Shared {
		a.Name, a.UID, a.GID = "shared", -1, -1
	}
	return g.group(a)
}

func (g *Groups) group(a about) *Group {
	sum := sha256.Sum256([]byte(strings.Join(a.GPUs, "\n")))
	dir := filepath.Join(g.Dir, a.Name, hex.EncodeToString(sum[:6]))
	group := &Group{
		Control: Control{Binary: g.Binary, Pipe: filepath.Join(dir, "pipe"), Log: filepath.Join(dir, "log"), GPUs: a.GPUs, MultiUser: a.UID < 0},
		Name:    a.Name, UID: a.UID, GID: a.GID,
	}
	if a.UID >= 0 && a.UID != os.Geteuid() {
		group.Credential = &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}
	}
	return group
}

func (g *Group) dir() string { return filepath.Dir(g.Pipe) }

// Ensure starts a group's control daemon unless it runs.
func (g *Groups) Ensure(ctx context.Context, group *Group) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	// The clients of a group must be able to enter the folders above its pipe
	// folder.
	if err := os.MkdirAll(group.dir(), 0o755); err != nil {
		return fmt.Errorf("MPS folder: %w", err)
	}
	unlock, err := lock(group.dir())
	if err != nil {
		return fmt.Errorf("MPS folder: %w", err)
	}
	defer unlock()
	text, err := json.Marshal(about{group.Name, group.UID, group.GID, group.GPUs})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(group.dir(), aboutFile), text, 0o644); err != nil {
		return fmt.Errorf("MPS folder: %w", err)
	}
	return group.Start(ctx)
}

// lock keeps other processes from starting or stopping the same daemon.
func lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// List returns all groups that were ever started below Dir, by name.
func (g *Groups) List() ([]*Group, error) {
	files, err := filepath.Glob(filepath.Join(g.Dir, "*", "*", aboutFile))
	if err != nil {
		return nil, err
	}
	var list []*Group
	for _, name := range files {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var a about
		if err := json.Unmarshal(text, &a); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, g.group(a))
	}
	return list, nil
}

// Stop ends a group's control daemon. If clients are connected, it fails unless forced,
// because the clients die with the control daemon.
func (g *Groups) Stop(ctx context.Context, group *Group, force bool) error {
	if _, err := os.Stat(group.dir()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	unlock, err := lock(group.dir())
	if err != nil {
		return fmt.Errorf("MPS folder: %w", err)
	}
	defer unlock()
	servers, err := group.Servers(ctx)
	if err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	clients := 0
	for _, s := range servers {
		clients += len(s.Clients)
	}
	if clients > 0 && !force {
		return &BusyError{Group: group.Name, Clients: clients}
	}
	if err := group.Quit(ctx); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(group.dir(), aboutFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// BusyError means that clients would die with the control daemon.
type BusyError struct {
	Group   string
	Clients int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("MPS group %s has %d clients, which would die with it", e.Group, e.Clients)
}

// Fix restarts a control daemon that has ended, and a server in FAULT without clients.
// It reports whether something was wrong.
func (g *Groups) Fix(ctx context.Context, group *Group) (wrong bool, err error) {
	servers, err := group.Servers(ctx)
	if errors.Is(err, ErrNotRunning) {
		return true, g.Ensure(ctx, group)
	}
	if err != nil {
		return false, err
	}
	for _, s := range servers {
		if s.Status != Fault {
			continue
		}
		wrong = true
		if len(s.Clients) > 0 {
			continue // its clients are ending
		}
		if _, err := group.Ask(ctx, fmt.Sprintf("shutdown_server %d -f", s.PID)); err != nil {
			return true, err
		}
	}
	return wrong, nil
}

// TerminateOf disconnects the clients of a container and returns their number. owns
// reports whether a process belongs to the container.
func (g *Group) TerminateOf(ctx context.Context, owns func(pid int) bool) (n int, err error) {
	servers, err := g.Servers(ctx)
	if err != nil {
		if errors.Is(err, ErrNotRunning) {
			return 0, nil
		}
		return 0, err
	}
	for _, s := range servers {
		for _, client := range s.Clients {
			if !owns(client.PID) {
				continue
			}
			n++
			if e := g.Terminate(ctx, s.PID, client.PID); e != nil {
				err = errors.Join(err, e)
			}
		}
	}
	return n, err
}
