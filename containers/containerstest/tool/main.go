// Command tool is the program inside the image of the driver suite.
// containerstest.Proc describes its arguments.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"carma/containers"
	"carma/containers/containerstest"
)

func main() {
	term := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1)
	var came syscall.Signal
	go func() {
		came = (<-signals).(syscall.Signal)
		close(term)
	}()
	dir, _ := os.Getwd()
	p := containerstest.Proc{
		Args: os.Args[1:], Env: os.Environ(), Dir: dir,
		User:  fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Size: size,
		Term: term, Kill: make(chan struct{}),
		ReadFile:   os.ReadFile,
		WriteFile:  func(path string, data []byte) error { return os.WriteFile(path, data, 0o666) },
		Interfaces: interfaces, Capabilities: capabilities, Devices: devices,
		Look: look, Serve: serve,
		Signal: func() string { return unix.SignalName(came) },
		Fork:   func() error { return exec.Command("/proc/self/exe", "block:0").Start() },
	}
	if slices.Contains(p.Args, "stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	os.Exit(p.Run())
}

// size returns the size of the terminal and a channel that is closed when the kernel
// signals a change.
func size() (containers.Size, <-chan struct{}, bool) {
	signals, changed := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGWINCH) // before the size is read, so that no change is missed
	go func() {
		<-signals
		signal.Stop(signals)
		close(changed)
	}()
	w, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	if err != nil {
		return containers.Size{}, nil, false
	}
	return containers.Size{Rows: w.Row, Cols: w.Col}, changed, true
}

// interfaces returns the network interfaces that are up.
func interfaces() (names []string) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	return names
}

// devices returns the device nodes of NVIDIA's GPUs.
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

// look returns a fact about the machine, see [containerstest.Proc].
func look(what string) string {
	what, of, _ := strings.Cut(what, ":")
	switch what {
	case "hostname":
		name, _ := os.Hostname()
		return name
	case "address":
		return address()
	case "groups":
		ids, _ := os.Getgroups()
		return strings.Trim(fmt.Sprint(ids), "[]")
	case "core":
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_CORE, &l)
		return fmt.Sprintf("%d:%d", l.Cur, l.Max)
	case "ipc":
		name, _ := os.Readlink("/proc/self/ns/ipc")
		return name
	case "first":
		if os.Getpid() == 1 {
			return "this"
		}
		return "another"
	case "size":
		var fs unix.Statfs_t
		_ = unix.Statfs(of, &fs)
		return fmt.Sprint(fs.Blocks * uint64(fs.Bsize))
	case "node":
		var f unix.Stat_t
		_ = unix.Stat(of, &f)
		return fmt.Sprintf("%d:%d", unix.Major(f.Rdev), unix.Minor(f.Rdev))
	}
	return ""
}

// address reports whether the machine's own name resolves to a loopback address.
func address() string {
	name, _ := os.Hostname()
	found, err := net.LookupHost(name)
	switch {
	case err != nil:
		return "unknown"
	case len(found) > 0 && net.ParseIP(found[0]).IsLoopback():
		return "loopback"
	}
	return "elsewhere"
}

// serve greets one client of a port.
func serve(port string) error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(conn, "hello")
	return errors.Join(err, conn.Close())
}
