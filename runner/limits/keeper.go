package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/atomicwriter"
)

// Keeper sets the limits of containers and clears them again. The driver adds a group's
// soft limit, which is guaranteed memory, to the soft limits of all groups above it. It
// subtracts it only when the limit is set to 0, not when the group is removed. So the
// Keeper writes a note before it sets a limit, and removes the note after it has cleared
// the limit. All methods may be called from several goroutines, for different containers.
type Keeper struct {
	Tool Tool
	// Dir is the folder of the notes.
	Dir string
	// Root is the folder with /proc and /sys. Empty means "/".
	Root string
}

// note is a record of a container's limits.
type note struct {
	ID     string           `json:"id"`
	Group  string           `json:"group"`
	Limits map[string]Limit `json:"limits"` // by GPU
	// Boot is the kernel's boot ID. After another boot nothing is guaranteed.
	Boot string `json:"boot"`
}

// Limit limits the parked container id with process pid, on the GPUs that are the keys of
// l, by UUID. It may be repeated. After an error some of the limits may be set.
func (k *Keeper) Limit(ctx context.Context, id string, pid int, l map[string]Limit) error {
	group, err := GroupOf(k.root(), pid)
	if err != nil {
		return err
	}
	if err := k.write(note{ID: id, Group: group, Limits: l, Boot: k.boot()}); err != nil {
		return err
	}
	for _, gpu := range slices.Sorted(maps.Keys(l)) {
		if err := k.Tool.Set(ctx, group, gpu, l[gpu]); err != nil {
			return err
		}
	}
	return nil
}

// Noted returns the recorded limits of a container, by GPU, or nil if there are none.
func (k *Keeper) Noted(id string) map[string]Limit {
	n, err := k.read(id)
	if err != nil {
		return nil
	}
	return n.Limits
}

// Read returns a container's limit on a GPU as the tool reports it.
func (k *Keeper) Read(ctx context.Context, id, gpu string) (Limit, error) {
	n, err := k.read(id)
	if err != nil {
		return Limit{}, err
	}
	return k.Tool.Get(ctx, n.Group, gpu)
}

// Clear clears a container's limits, if its control group still exists, and removes the
// note. A container without limits is no error. An error lists limits that may stay
// guaranteed. The note is removed even then, unless ctx ended.
func (k *Keeper) Clear(ctx context.Context, id string) error {
	n, err := k.read(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errors.Join(err, k.forget(id))
	}
	err = k.clear(ctx, n)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, k.forget(id))
}

func (k *Keeper) clear(ctx context.Context, n note) error {
	if _, err := os.Stat(filepath.Join(k.root(), n.Group)); errors.Is(err, os.ErrNotExist) {
		return k.leaked(n)
	}
	var all []error
	for _, gpu := range slices.Sorted(maps.Keys(n.Limits)) {
		if err := k.Tool.Set(ctx, n.Group, gpu, Limit{}); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// leaked returns an error if a group is gone and its soft limit was not cleared.
func (k *Keeper) leaked(n note) error {
	var left []string
	for _, gpu := range slices.Sorted(maps.Keys(n.Limits)) {
		if l := n.Limits[gpu]; l.Soft > 0 {
			left = append(left, fmt.Sprintf("%d MiB of %s", l.Soft/mib, gpu))
		}
	}
	if len(left) == 0 || n.Boot != k.boot() {
		return nil
	}
	return fmt.Errorf("control group %s is gone with %s guaranteed in the groups above it; until they go or the machine restarts, that stays", n.Group, strings.Join(left, ", "))
}

// Sweep removes the notes of containers whose control groups are gone, and returns an
// error for each soft limit that may still be guaranteed. Call it at the start. Limits of
// existing groups are cleared when their containers are removed.
func (k *Keeper) Sweep() (leaked []error) {
	files, err := filepath.Glob(filepath.Join(k.Dir, "*.json"))
	if err != nil {
		return []error{err}
	}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		n, err := k.read(id)
		if err == nil {
			if _, gone := os.Stat(filepath.Join(k.root(), n.Group)); !errors.Is(gone, os.ErrNotExist) {
				continue
			}
			err = k.leaked(n)
		}
		if err = errors.Join(err, k.forget(id)); err != nil {
			leaked = append(leaked, err)
		}
	}
	return leaked
}

func (k *Keeper) root() string {
	if k.Root == "" {
		return "/"
	}
	return k.Root
}

// boot returns the kernel's boot ID, or "" if unknown.
func (k *Keeper) boot() string {
	b, err := os.ReadFile(filepath.Join(k.root(), "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (k *Keeper) file(id string) string { return filepath.Join(k.Dir, id+".json") }

// write makes the note durable. The limit is set afterwards.
func (k *Keeper) write(n note) error {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(k.file(n.ID), b, 0o600)
}

func (k *Keeper) read(id string) (n note, err error) {
	b, err := os.ReadFile(k.file(id))
	if err != nil {
		return note{}, err
	}
	if err := json.Unmarshal(b, &n); err != nil {
		return note{}, fmt.Errorf("limits of container %s: %w", id, err)
	}
	return n, nil
}

func (k *Keeper) forget(id string) error {
	err := os.Remove(k.file(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
