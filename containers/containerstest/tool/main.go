// Command tool is the program inside the image of the driver suite; see
// containerstest.Proc for its arguments.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"carma/containers/containerstest"
)

func main() {
	term := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		close(term)
	}()
	dir, _ := os.Getwd()
	p := containerstest.Proc{
		Args: os.Args[1:], Env: os.Environ(), Dir: dir,
		User:   fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		Stdout: os.Stdout, Stderr: os.Stderr,
		Term: term, Kill: make(chan struct{}),
		ReadFile:   os.ReadFile,
		WriteFile:  func(path string, data []byte) error { return os.WriteFile(path, data, 0o666) },
		Interfaces: interfaces, Capabilities: capabilities, Devices: devices,
		Fork: func() error { return exec.Command("/proc/self/exe", "block:0").Start() },
	}
	if slices.Contains(p.Args, "stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	os.Exit(p.Run())
}

// interfaces are those that are there and up.
func interfaces() (names []string) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	return names
}

// devices are those that have to do with NVIDIA's GPUs.
func devices() (names []string) {
	all, _ := os.ReadDir("/dev")
	for _, f := range all {
		if strings.HasPrefix(f.Name(), "nvidia") {
			names = append(names, f.Name())
		}
	}
	return names
}

func capabilities() string {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			return strings.TrimSpace(mask)
		}
	}
	return "unknown"
}
