// Package driverfiles determines from the machine's files which parts of NVIDIA's driver
// and Container Toolkit are installed, and their versions. It opens no device and loads
// no library. Each function takes the folder with the machine's files, / except in tests.
package driverfiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carma/internal/lazyregexp"
)

var (
	moduleVersion  = lazyregexp.New(`Kernel Module\b.*?\s(\d{3,}\.\d+(?:\.\d+)?)\s`)
	libraryVersion = lazyregexp.New(`^lib(?:cuda|nvidia-ml)\.so\.(\d{3,}\.\d+(?:\.\d+)?)$`)
)

// Module returns the version of the loaded kernel module, such as "550.54.14", or "".
func Module(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "/proc/driver/nvidia/version"))
	if err != nil {
		return ""
	}
	if m := moduleVersion().FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// libraries lists the folders in which distributions install the driver's libraries.
var libraries = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}

// Library returns the version of the driver's CUDA library, libcuda.so.1, and its path.
// Both are empty if it is not in a usual folder.
func Library(root string) (version, path string) {
	for _, dir := range libraries {
		target, err := os.Readlink(filepath.Join(root, dir, "libcuda.so.1"))
		if err != nil {
			continue
		}
		if v := VersionIn([]string{target}); len(v) == 1 {
			return v[0], dir + "/libcuda.so.1"
		}
	}
	return "", ""
}

// VersionIn returns the driver versions in paths of its libraries, in order, without
// duplicates.
func VersionIn(paths []string) (versions []string) {
	for _, p := range paths {
		if m := libraryVersion().FindStringSubmatch(filepath.Base(p)); m != nil && !slices.Contains(versions, m[1]) {
			versions = append(versions, m[1])
		}
	}
	slices.Sort(versions)
	return versions
}

// PersistenceSocket is the socket of nvidia-persistenced. Containers get it if it exists.
const PersistenceSocket = "/run/nvidia-persistenced/socket"

// IsPersistenceSocket reports whether a path is the socket's path; /var/run is a link to
// /run.
func IsPersistenceSocket(path string) bool {
	return strings.TrimPrefix(path, "/var") == PersistenceSocket
}

// Persistence reports whether the socket of nvidia-persistenced exists, and whether its
// program is installed.
func Persistence(root string) (socket, program bool) {
	_, socketErr := os.Stat(filepath.Join(root, PersistenceSocket))
	_, programErr := os.Stat(filepath.Join(root, "/usr/bin/nvidia-persistenced"))
	return socketErr == nil, programErr == nil
}

// Compat returns a folder with CUDA's forward compatibility libraries that the machine's
// linker searches, and the file that names the folder. Both are empty if there is none.
func Compat(root string) (folder, file string) {
	files, _ := filepath.Glob(filepath.Join(root, "/etc/ld.so.conf.d/*.conf"))
	for _, path := range append([]string{filepath.Join(root, "/etc/ld.so.conf")}, files...) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if filepath.IsAbs(line) && filepath.Base(line) == "compat" && strings.Contains(line, "cuda") {
				return line, "/" + strings.TrimPrefix(strings.TrimPrefix(path, filepath.Clean(root)), "/")
			}
		}
	}
	return "", ""
}

// ToolkitMode returns the configured mode of NVIDIA's container runtime, such as "cdi" or
// "legacy", or "" if none is configured.
func ToolkitMode(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "/etc/nvidia-container-runtime/config.toml"))
	if err != nil {
		return ""
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
		}
		if key, value, ok := strings.Cut(line, "="); ok && section == "nvidia-container-runtime" && strings.TrimSpace(key) == "mode" {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}
