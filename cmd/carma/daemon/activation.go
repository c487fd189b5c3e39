package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"carma/cmd/carma/cli"
	"carma/runner/server"
)

// firstHandedOver is the number of the first open file that a service manager passes, see
// sd_listen_fds(3).
const firstHandedOver = 3

// handedOver returns the socket that the service manager has opened for the daemon
// (carma.socket), or nil if there is none. The open files count from number first. Like
// findManager, it removes the variables that it has read from the environment.
func handedOver(first int) (net.Listener, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) || count == "" || count == "0" {
		return nil, nil
	}
	if count != "1" {
		return nil, cli.Usagef("leave one ListenStream in carma.socket", "the service manager hands over %s sockets, and carma has one", count)
	}
	unix.CloseOnExec(first) // programs that the daemon starts must not inherit it
	file := os.NewFile(uintptr(first), "socket of the service manager")
	l, err := net.FileListener(file) // duplicates the descriptor of the socket
	file.Close()
	if err != nil {
		return nil, fmt.Errorf("the socket that the service manager hands over: %w", err)
	}
	return l, nil
}

// listen returns the daemon's socket: the given one, if any, or a new one.
func listen(socket string, given net.Listener) (net.Listener, error) {
	if given == nil {
		return server.Listen(socket)
	}
	if at := given.Addr().String(); given.Addr().Network() != "unix" || filepath.Clean(at) != filepath.Clean(socket) {
		given.Close()
		return nil, cli.Usagef(fmt.Sprintf("write ListenStream=%s into carma.socket", socket),
			"the service manager hands over the socket %s, but the configuration has socket: %s", at, socket)
	}
	return given, nil
}
