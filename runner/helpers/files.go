package helpers

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"carma/runner/api"
)

// ownedBy returns the files, where files without an owner get the container's user if that
// is a number, else root.
func ownedBy(files []api.SuiteFile, user string) []api.SuiteFile {
	files = slices.Clone(files)
	uid, gid, _ := strings.Cut(user, ":")
	u, err := strconv.Atoi(uid)
	if err != nil {
		u = 0
	}
	g, err := strconv.Atoi(gid)
	if err != nil {
		g = 0
	}
	for i := range files {
		if files[i].UID < 0 {
			files[i].UID = u
		}
		if files[i].GID < 0 {
			files[i].GID = g
		}
	}
	return files
}

// Covered lists the targets of a container's other mounts.
type Covered struct {
	Mounts []string // folders and files of the host, and volumes
	Tmpfs  []string
}

// unreal lists folders of the kernel in every container.
var unreal = []string{"/proc", "/sys", "/dev"}

// CheckFiles refuses files that a container cannot get. A runtime creates a missing
// target as root, also in a folder of the host that is mounted there, so a file must not
// be at, in or above a mount. It may be in a tmpfs, which belongs to the container.
func CheckFiles(files []api.SuiteFile, c Covered) error {
	seen := map[string]bool{}
	for _, f := range files {
		at := path.Clean(f.Path)
		switch {
		case !path.IsAbs(f.Path) || at == "/" || strings.ContainsRune(f.Path, 0):
			return fmt.Errorf("file %q: not the absolute path of a file", f.Path)
		case f.Mode&^0o777 != 0:
			return fmt.Errorf("file %s: mode %o; no more than 777 is possible", f.Path, f.Mode)
		case seen[at]:
			return fmt.Errorf("file %s: two secrets, configs or files have this path; change one target", f.Path)
		}
		seen[at] = true
	}
	for _, f := range files {
		at := path.Clean(f.Path)
		for _, dir := range unreal {
			if below(at, dir) {
				return fmt.Errorf("file %s: %s is the kernel's; write a target outside it, for example /run/secrets/NAME", f.Path, dir)
			}
		}
		for _, m := range c.Mounts {
			if m = path.Clean(m); below(at, m) || below(m, at) {
				return fmt.Errorf("file %s: its path meets the mount at %s; write a target outside it, for example /run/secrets/NAME", f.Path, m)
			}
		}
		for _, m := range c.Tmpfs {
			if below(path.Clean(m), at) {
				return fmt.Errorf("file %s: %s is a tmpfs there; write another target", f.Path, m)
			}
		}
		for dir := path.Dir(at); dir != "/"; dir = path.Dir(dir) {
			if seen[dir] {
				return fmt.Errorf("file %s: %s is a file too; write another target", f.Path, dir)
			}
		}
	}
	return nil
}

// below reports whether a clean path is a folder or lies in it.
func below(at, dir string) bool {
	return at == dir || dir == "/" || strings.HasPrefix(at, dir+"/")
}

// coveredIn returns the mounts of a helper beside its files.
func coveredIn(h *api.Helper) (c Covered) {
	for _, m := range h.Container.Mounts {
		c.Mounts = append(c.Mounts, m.Target)
	}
	for _, t := range h.Tmpfs {
		folder, _, _ := strings.Cut(t, ":")
		c.Tmpfs = append(c.Tmpfs, folder)
	}
	return c
}

// withVolumes adds the volumes of a suite.
func (c Covered) withVolumes(j *api.Joined) Covered {
	for _, v := range j.Volumes {
		c.Mounts = append(c.Mounts, v.Target)
	}
	return c
}

// onlyFiles reports whether a suite has only files beside its tasks. The default network
// does not count, because without helpers tasks need no names.
func onlyFiles(s *api.Suite) bool {
	for _, n := range s.Networks {
		if n != (api.SuiteNetwork{Name: defaultNetwork}) {
			return false
		}
	}
	for _, j := range s.Tasks {
		if len(j.Hosts) > 0 || slices.ContainsFunc(j.Networks, func(p api.NetworkPlace) bool { return p.Network != defaultNetwork }) {
			return false
		}
	}
	return len(s.Helpers)+len(s.Volumes) == 0
}

// defaultNetwork names the network of the services that name none.
const defaultNetwork = "default"

// hasFiles reports whether a container of a suite gets files.
func hasFiles(s *api.Suite) bool {
	for _, j := range s.Tasks {
		if len(j.Files) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(s.Helpers, func(h api.Helper) bool { return len(h.Files) > 0 })
}
