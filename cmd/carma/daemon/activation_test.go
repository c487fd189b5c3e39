package daemon

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// activate opens a socket like a service manager, describes it in the environment, and returns
// the file descriptor that the daemon inherits.
func activate(t *testing.T, network, address, sockets string) int {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	file, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// A new file descriptor that programs inherit; handedOver closes it.
	number, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("LISTEN_FDS", sockets)
	t.Setenv("LISTEN_FDNAMES", "carma.socket")
	return number
}

// TestActivation: the daemon serves at the socket that the manager has opened, does not remove
// it when it ends, and does not pass it on to programs that it starts.
func TestActivation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	given, err := handedOver(activate(t, "unix", path, "1"))
	if err != nil || given == nil {
		t.Fatal(given, err)
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if value, set := os.LookupEnv(name); set {
			t.Errorf("%s=%s stays in the environment", name, value)
		}
	}
	l, err := listen(path, given)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := l.(*net.UnixListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("programs inherit the socket: flags %x, %v", flags, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	near.Close()
	l.Close()
	if waits, err := net.Dial("unix", path); err != nil {
		t.Errorf("a client between two daemons: %v", err)
	} else {
		waits.Close()
	}
}

// TestActivationRefused: an unsuitable socket gives an error of one line. Without a
// socket the daemon opens its own.
func TestActivationRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")

	activate(t, "unix", path, "1")
	t.Setenv("LISTEN_PID", "1")
	if l, err := handedOver(-1); l != nil || err != nil {
		t.Errorf("of another process: %v, %v", l, err)
	}
	if l, err := handedOver(-1); l != nil || err != nil {
		t.Errorf("nothing handed over: %v, %v", l, err)
	}
	if _, err := handedOver(activate(t, "unix", filepath.Join(dir, "two"), "2")); err == nil || !strings.Contains(err.Error(), "hands over 2 sockets") {
		t.Errorf("two: %v", err)
	}
	for name, wrong := range map[string]int{
		"elsewhere": activate(t, "unix", filepath.Join(dir, "other"), "1"),
		"tcp":       activate(t, "tcp", "127.0.0.1:0", "1"),
	} {
		t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
		t.Setenv("LISTEN_FDS", "1")
		given, err := handedOver(wrong)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := listen(path, given); err == nil || !strings.Contains(err.Error(), "but the configuration has socket: "+path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
