package containerfiles

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"carma/containers"
	"carma/containers/option"
	"carma/runner/mounts"

	"golang.org/x/sys/unix"
)

// Extra describes what a container has in addition to a user's mounts.
type Extra struct {
	// files is set if the container gets files of its suite, so that root must not be
	// able to write to the mounts.
	files bool
	// points lists the mount targets and the working folder, which the runtime creates if they are
	// missing.
	points []point
}

// point is a path in a container at which a folder or a file must exist.
type point struct {
	path string
	dir  bool
}

// enginePoints are files that the engine mounts in every container.
var enginePoints = []point{{"/etc/hosts", false}, {"/etc/hostname", false}, {"/etc/resolv.conf", false}}

// Beside describes what a container has in addition to the first n of its mounts.
func Beside(spec *containers.Spec, n int, files bool) Extra {
	in := Extra{files: files}
	folder := func(path string) { in.points = append(in.points, point{path, true}) }
	if spec.WorkDir != "" {
		folder(spec.WorkDir)
	}
	for _, m := range spec.Mounts[n:] {
		info, err := os.Stat(m.Source)
		in.points = append(in.points, point{m.Target, err == nil && info.IsDir()})
	}
	for _, t := range option.Each(spec.Tmpfs, option.ParseTmpfs) {
		folder(t.Target)
	}
	if h := spec.Hosted; h != nil {
		for _, v := range h.Volumes {
			folder(v.Target)
		}
		for target := range h.Tmpfs {
			folder(target)
		}
	}
	return in
}

// makePoints makes the mount points and the working folder that lie in a user's mounts
// and are missing there, as that user. The runtime would make them as root, which it
// cannot in these mounts.
func (in Extra) makePoints(u mounts.User, list []containers.Mount, sources []*mounts.Source) error {
	points := slices.Concat(enginePoints, in.points)
	for i, m := range list {
		points = append(points, point{m.Target, sources[i].IsDir()})
	}
	for _, p := range points {
		i := around(list, p.path)
		if i < 0 || !sources[i].IsDir() {
			continue
		}
		err := sources[i].Make(u, strings.TrimPrefix(path.Clean(p.path), path.Clean(list[i].Target)), p.dir)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
			return fmt.Errorf("%w: %s lies in the mount of %s, where it is missing and you cannot make it (%w); choose another path, or have it made there", containers.ErrInvalid, p.path, list[i].Source, err)
		}
		if err != nil {
			return fmt.Errorf("make %s in %s: %w", p.path, list[i].Source, err)
		}
	}
	return nil
}

// around returns the index of the innermost mount in which a path lies, or -1. A mount
// does not lie in itself.
func around(list []containers.Mount, at string) int {
	best := -1
	for i, m := range list {
		target := path.Clean(m.Target)
		if !strings.HasPrefix(path.Clean(at), target+"/") {
			continue
		}
		if best < 0 || cmp.Compare(len(target), len(path.Clean(list[best].Target))) > 0 {
			best = i
		}
	}
	return best
}
