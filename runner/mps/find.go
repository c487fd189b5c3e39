package mps

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// serverProgram is the program that the control program starts for its clients.
const serverProgram = "nvidia-cuda-mps-server"

// driverFolders are the places of a driver's programs if the driver is mounted
// into the machine and not installed.
var driverFolders = []string{"/usr/local/nvidia/bin", "/usr/lib/nvidia/current", "/opt/nvidia/bin"}

// Find returns the path of a control program with the given name or path. An empty
// control means [Binary]. A name is searched in PATH, then in the folders where mounted
// drivers have their programs. It is also an error if the server's program is neither
// beside the control program nor in PATH. All errors are ErrNotInstalled.
func Find(control string) (path string, err error) {
	if control == "" {
		control = Binary
	}
	if path, err = lookFor(control); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), serverProgram)); err == nil {
		return path, nil
	}
	if _, err := lookFor(serverProgram); err != nil {
		return "", err
	}
	return path, nil
}

// lookFor finds a program in PATH or the driver's folders.
func lookFor(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		return filepath.Abs(path)
	}
	if !strings.Contains(program, "/") {
		for _, dir := range driverFolders {
			if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
				return path, nil
			}
		}
		return "", fmt.Errorf("%s is %w: not in PATH, %s", program, ErrNotInstalled, strings.Join(driverFolders, ", "))
	}
	return "", fmt.Errorf("%s is %w", program, ErrNotInstalled)
}
