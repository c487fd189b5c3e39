package containerstest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
)

// SetMemory implements [containers.Resizer]. Nothing enforces the limit.
func (f *Fake) SetMemory(ctx context.Context, id string, bytes int64) error {
	lost, err := f.call(ctx, OpMemory)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil && c.state == containers.StateRunning {
		c.memory = append(c.memory, bytes)
	}
	return lost
}

// SetCPUs implements [containers.Resizer].
func (f *Fake) SetCPUs(ctx context.Context, id string, cpus float64, weight int64) error {
	lost, err := f.call(ctx, OpCPUs)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil && c.state == containers.StateRunning {
		c.cpus = append(c.cpus, CPUs{cpus, weight})
	}
	return lost
}

// CPUs are the processors and the weight of a call of SetCPUs.
type CPUs struct {
	CPUs   float64
	Weight int64
}

// CPUs returns the CPU limits that a container was given while it ran.
func (f *Fake) CPUs(name string) []CPUs {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		if c.spec.Name == name {
			return slices.Clone(c.cpus)
		}
	}
	return nil
}

// Memory returns the memory limits that a container was given while it ran.
func (f *Fake) Memory(name string) []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		if c.spec.Name == name {
			return slices.Clone(c.memory)
		}
	}
	return nil
}

// Memory checks that the memory limit of a running container can be raised. It is not
// part of [Suite], because the fake has no kernel.
func Memory(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d := newDriver(t)
	t.Cleanup(func() { _ = d.Close() })
	s := &suite{T: t, d: d, ctx: ctx, img: img, newDriver: newDriver, mark: "memory"}
	resizer, can := d.(containers.Resizer)
	if !can {
		t.Fatalf("%s cannot change the memory of a container", d.Name())
	}
	for _, more := range []int64{0, 512 << 20} {
		spec := s.spec("out:ready", "await", "hog:128")
		spec.Memory = 32 << 20
		id := s.startSpec(spec)
		s.follow(id).until("ready")
		for range 2 { // the call may be repeated
			if more == 0 {
				break
			}
			if err := resizer.SetMemory(ctx, id, more); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Signal(ctx, id); err != nil {
			t.Fatal(err)
		}
		if exit := s.wait(id); (exit.Code == 0) != (more > 0) {
			t.Errorf("with a limit of %d bytes set: exit = %+v", more, exit)
		}
		if err := resizer.SetMemory(ctx, id, 64<<20); err != nil {
			t.Errorf("of one that has ended: %v", err)
		}
	}
	if err := resizer.SetMemory(ctx, "none-of-this-name", 64<<20); err != nil {
		t.Errorf("of one that is gone: %v", err)
	}
}

// Processors checks that the processors of a running container can be changed, with the
// quota and shares in its control group, version 1 or 2. It is not part of [Suite],
// because the fake has no kernel.
func Processors(t *testing.T, newDriver func(t *testing.T) containers.Driver, img Images) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d := newDriver(t)
	t.Cleanup(func() { _ = d.Close() })
	s := &suite{T: t, d: d, ctx: ctx, img: img, newDriver: newDriver, mark: "processors"}
	resizer, can := d.(containers.Resizer)
	if !can {
		t.Fatalf("%s cannot change the processors of a container", d.Name())
	}
	read := func(more float64, weight int64, set bool) string {
		spec := s.spec("out:ready", "await")
		spec.CPUs, spec.CPUWeight = 0.5, 500
		if !set {
			spec.CPUs, spec.CPUWeight = more, weight
		}
		id := s.startSpec(spec)
		s.follow(id).until("ready")
		for range 2 { // the call may be repeated
			if !set {
				break
			}
			if err := resizer.SetCPUs(ctx, id, more, weight); err != nil {
				t.Fatal(err)
			}
		}
		has := quotaOf(t, spec.Name, id)
		if err := d.Signal(ctx, id); err != nil {
			t.Fatal(err)
		}
		s.wait(id)
		return has
	}
	for _, want := range []CPUs{{1.5, 250}, {0.25, 1500}} {
		made, set := read(want.CPUs, want.Weight, false), read(want.CPUs, want.Weight, true)
		if made != set {
			t.Errorf("%+v: its control group has %q when it was made so, and %q when it was set", want, made, set)
		}
	}
	if all, was := read(0, 500, true), read(0.5, 500, false); all == was {
		t.Errorf("with all processors its control group has %q, as with half of one", all)
	}
	if err := resizer.SetCPUs(ctx, "none-of-this-name", 1, 0); err != nil {
		t.Errorf("of one that is gone: %v", err)
	}
}

// quotaOf returns the CPU quota in the control group of a container.
func quotaOf(t *testing.T, names ...string) string {
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range groups {
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			which := strings.SplitN(strings.TrimSpace(line), ":", 3)
			ours := func(name string) bool { return strings.Contains(which[2], name) }
			if !slices.ContainsFunc(names, ours) || which[1] != "" && !slices.Contains(strings.Split(which[1], ","), "cpu") {
				continue
			}
			folder, files := filepath.Join("/sys/fs/cgroup/cpu", which[2]), []string{"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"}
			if which[1] == "" {
				folder, files = filepath.Join("/sys/fs/cgroup", which[2]), []string{"cpu.max", "cpu.weight"}
			}
			var has []string
			for _, name := range files {
				b, err := os.ReadFile(filepath.Join(folder, name))
				if err != nil {
					t.Fatal(err)
				}
				has = append(has, strings.TrimSpace(string(b)))
			}
			return strings.Join(has, " ")
		}
	}
	t.Fatalf("no process is in the control group of %v", names)
	return ""
}
