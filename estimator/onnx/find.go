package onnx

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Variable is the name of the environment variable with the library's path.
const Variable = "CARMA_ONNXRUNTIME"

type candidate struct{ path, version string }

type rejection struct {
	path string
	err  error
}

// find returns the usable libraries, the preferred one first, and the reasons against
// others. If the user has set a path, it checks no other.
func find() (found []candidate, rejected []rejection) {
	chosen := os.Getenv(Variable)
	paths := []string{chosen}
	if chosen == "" {
		paths = places(os.Getenv)
	}
	seen := map[string]bool{}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil && chosen == "" || seen[real] && real != "" {
			continue
		}
		seen[real] = true
		var version string
		if err == nil && chosen == "" {
			err = trusted(real)
		}
		if err == nil {
			version, err = inspect(real)
		}
		if err != nil {
			rejected = append(rejected, rejection{path, err})
			continue
		}
		found = append(found, candidate{real, version})
	}
	return found, rejected
}

// CacheDir returns the folder into which make onnxruntime puts the library, or "" if the
// user has no home.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "carma", "onnxruntime")
}

// places lists files that may be the library, in order of preference: carma's
// own, the system's, npm's, PyPI's.
func places(env func(string) string) []string {
	var out []string
	add := func(pattern ...string) {
		if slices.Contains(pattern, "") {
			return
		}
		matches, _ := filepath.Glob(filepath.Join(pattern...))
		slices.Reverse(matches) // the newest name first
		out = append(out, matches...)
	}
	const name = "libonnxruntime.so*"
	add(CacheDir(), name)
	add("/var/cache/carma/onnxruntime", name)
	for _, dir := range libraryDirs(env) {
		add(dir, name)
	}
	node := "linux/" + map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if runtime.GOARCH != "amd64" {
		node = "linux/" + runtime.GOARCH
	}
	for _, dir := range nodeDirs(env) {
		add(dir, "onnxruntime-node/bin/napi-v*", node, name)
	}
	for _, dir := range pythonDirs(env) {
		add(dir, "python3*/*-packages/onnxruntime/capi", name)
	}
	return out
}

// libraryDirs returns the folders in which the system's linker looks.
func libraryDirs(env func(string) string) []string {
	dirs := filepath.SplitList(env("LD_LIBRARY_PATH"))
	dirs = append(dirs, "/usr/local/lib", "/usr/local/lib64", "/usr/lib", "/usr/lib64", "/opt/onnxruntime/lib")
	multi, _ := filepath.Glob("/usr/lib/*-linux-gnu")
	dirs = append(dirs, multi...)
	configs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	for _, file := range append(configs, "/etc/ld.so.conf") {
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if dir := strings.TrimSpace(lines.Text()); strings.HasPrefix(dir, "/") {
				dirs = append(dirs, dir)
			}
		}
		f.Close()
	}
	return dirs
}

// nodeDirs are folders of npm packages.
func nodeDirs(env func(string) string) []string {
	home := env("HOME")
	dirs := filepath.SplitList(env("NODE_PATH"))
	if node, err := exec.LookPath("node"); err == nil {
		if node, err = filepath.EvalSymlinks(node); err == nil {
			dirs = append(dirs, filepath.Join(filepath.Dir(node), "../lib/node_modules"))
		}
	}
	dirs = append(dirs, "/usr/local/lib/node_modules", "/usr/lib/node_modules")
	if home != "" {
		dirs = append(dirs, filepath.Join(home, ".npm-global/lib/node_modules"), filepath.Join(home, "node_modules"))
	}
	if here, err := os.Getwd(); err == nil {
		dirs = append(dirs, filepath.Join(here, "node_modules"))
	}
	return dirs
}

// pythonDirs are folders that have python3.N in them.
func pythonDirs(env func(string) string) []string {
	var dirs []string
	if venv := env("VIRTUAL_ENV"); venv != "" {
		dirs = append(dirs, filepath.Join(venv, "lib"))
	}
	if home := env("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".local/lib"))
	}
	return append(dirs, "/usr/local/lib", "/usr/lib")
}
