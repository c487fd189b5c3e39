// Package cdi finds GPUs in the machine's Container Device Interface (CDI) files. For
// each device, these files list the device nodes, mounts, environment and hooks that a
// container needs. nvidia-ctk cdi generate makes NVIDIA's files.
package cdi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// Dirs lists the folders in which engines look for CDI files. If two devices have the
// same name, the device of the later folder counts.
var Dirs = []string{"/etc/cdi", "/var/run/cdi"}

// Kind is the class of NVIDIA's devices: the part of a device name before "=".
const Kind = "nvidia.com/gpu"

// Name returns a GPU's name in CDI files.
func Name(uuid string) string { return Kind + "=" + uuid }

// Names returns the names of GPUs in CDI files, in the order of uuids.
func Names(uuids []string) []string {
	names := make([]string, len(uuids))
	for i, id := range uuids {
		names[i] = Name(id)
	}
	return names
}

// Files contains the CDI files of some folders, as last read.
type Files struct {
	cache *cdi.Cache
	dirs  []string
}

// Read reads the CDI files of dirs, or of [Dirs] if nil. A missing folder counts as
// empty. A file that cannot be read is no error here: [Files.Missing] reports it if a GPU
// is not found.
func Read(dirs []string) (*Files, error) {
	if dirs == nil {
		dirs = Dirs
	}
	c, err := cdi.NewCache(cdi.WithSpecDirs(dirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("read CDI files in %s: %w", strings.Join(dirs, ", "), err)
	}
	return &Files{c, dirs}, nil
}

// Missing returns the reason why one of these GPUs cannot be found by name, or nil if all
// are found. Files of an older toolkit name GPUs by index, and files from before a MIG
// change lack the new instances. In these cases the error lists the names that exist.
func (f *Files) Missing(uuids []string) error {
	for _, id := range uuids {
		if f.cache.GetDevice(Name(id)) != nil {
			continue
		}
		err := fmt.Errorf("no CDI file in %s has the device %s", strings.Join(f.dirs, ", "), Name(id))
		if others := f.names(); len(others) > 0 {
			err = fmt.Errorf("%w, but %s; nvidia-ctk cdi generate makes them anew", err, strings.Join(others, ", "))
		}
		for path, errs := range f.cache.GetErrors() {
			err = fmt.Errorf("%w; %s: %w", err, path, errors.Join(errs...))
		}
		return err
	}
	return nil
}

// mostNames is the largest number of device names in one line.
const mostNames = 8

// names lists NVIDIA's devices in the files, without their class.
func (f *Files) names() []string {
	var found []string
	for _, name := range f.cache.ListDevices() {
		if short, ok := strings.CutPrefix(name, Kind+"="); ok {
			found = append(found, short)
		}
	}
	slices.Sort(found)
	if len(found) > mostNames {
		found = append(found[:mostNames], "...")
	}
	return found
}

// Inject adds the content of the files for these GPUs to a container's
// specification.
func (f *Files) Inject(spec *specs.Spec, uuids []string) error {
	if err := f.Missing(uuids); err != nil {
		return fmt.Errorf("CDI device: %w", err)
	}
	if _, err := f.cache.InjectDevices(spec, Names(uuids)...); err != nil {
		return fmt.Errorf("CDI device: %w", err)
	}
	return nil
}

// Nodes returns the GPUs' own device nodes, as paths in the container. Nodes that another
// device of the same kind also has are left out, because they do not identify a GPU.
func (f *Files) Nodes(uuids []string) []string {
	own := map[string]bool{}
	for _, id := range uuids {
		for _, path := range f.nodes(Name(id)) {
			own[path] = true
		}
	}
	paths := make([]string, 0, len(own))
	for path := range own {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

func (f *Files) nodes(name string) (paths []string) {
	d := f.cache.GetDevice(name)
	if d == nil {
		return nil
	}
	for _, n := range d.ContainerEdits.DeviceNodes {
		paths = append(paths, n.Path)
	}
	return paths
}

// Mounts returns the machine's files that NVIDIA's CDI files mount into containers, in
// order, without duplicates.
func (f *Files) Mounts() (paths []string) {
	vendor, class, _ := strings.Cut(Kind, "/")
	for _, spec := range f.cache.GetVendorSpecs(vendor) {
		if spec.GetClass() != class {
			continue
		}
		for _, m := range spec.ContainerEdits.Mounts {
			paths = append(paths, m.HostPath)
		}
		for _, d := range spec.Devices {
			for _, m := range d.ContainerEdits.Mounts {
				paths = append(paths, m.HostPath)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
