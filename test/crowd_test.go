//go:build e2e

package test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// crowdEnv is an environment variable that turns this program into one process of
// a crowd. Its value has the user, the number of connections and the socket.
const crowdEnv = "TEST_CROWD"

// eachOfCrowd is the number of connections of one process of a crowd. Its limit of open
// files is usually about 20,000.
const eachOfCrowd = 5000

// crowd is a number of connections of one user to a daemon. Several processes
// have them, because the limit of open files of one process does not bind an
// attacker.
type crowd struct {
	t       *testing.T
	members []member
	made    int // number of connections
}

type member struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// gather makes n connections to a socket as a user, and keeps them until leave.
func gather(t *testing.T, socket string, uid uint32, n int) *crowd {
	t.Helper()
	c := &crowd{t: t}
	t.Cleanup(c.leave)
	for left := n; left > 0; left -= eachOfCrowd {
		m := member{cmd: exec.Command("/proc/self/exe")}
		m.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", crowdEnv, uid, min(left, eachOfCrowd), socket))
		m.cmd.Stderr = os.Stderr
		in, err1 := m.cmd.StdinPipe()
		out, err2 := m.cmd.StdoutPipe()
		if err := errors.Join(err1, err2, m.cmd.Start()); err != nil {
			t.Fatal(err)
		}
		m.in, m.out = in, bufio.NewReader(out)
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		c.made += m.says(t)
	}
	return c
}

// says reads the number that a process of the crowd has written.
func (m member) says(t *testing.T) (n int) {
	t.Helper()
	if _, err := fmt.Fscanln(m.out, &n); err != nil {
		t.Errorf("one of a crowd: %v", err)
	}
	return n
}

// open returns the number of connections that the daemon has not closed.
func (c *crowd) open() (n int) {
	c.t.Helper()
	for _, m := range c.members {
		if _, err := io.WriteString(m.in, "\n"); err != nil {
			c.t.Fatal(err)
		}
		n += m.says(c.t)
	}
	return n
}

// leave ends the connections.
func (c *crowd) leave() {
	for _, m := range c.members {
		_ = m.in.Close()
		if err := m.cmd.Wait(); err != nil {
			c.t.Errorf("one of a crowd: %v", err)
		}
	}
	c.members = nil
}

// inCrowd is the program of one process of a crowd. It makes its connections and
// writes how many it has. For each line that it reads, it writes how many are
// still open.
func inCrowd(order string) error {
	var uid, n int
	var socket string
	if _, err := fmt.Sscan(order, &uid, &n, &socket); err != nil {
		return err
	}
	if err := syscall.Setuid(uid); err != nil {
		return err
	}
	var held []*net.UnixConn
	for len(held) < n {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
		switch {
		case err == nil:
			held = append(held, c)
		case errors.Is(err, unix.EAGAIN): // the kernel's queue of new connections is full
			time.Sleep(time.Millisecond)
		default:
			return err
		}
	}
	fmt.Println(len(held))
	for ask := bufio.NewScanner(os.Stdin); ask.Scan(); {
		open := 0
		for _, c := range held {
			if isOpen(c) {
				open++
			}
		}
		fmt.Println(open)
	}
	return nil
}

// isOpen reads the data that the daemon has sent, without waiting, and reports whether
// more may come.
func isOpen(c *net.UnixConn) (open bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	buf := make([]byte, 1<<10)
	_ = raw.Read(func(fd uintptr) bool {
		for {
			n, _, err := unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			if n > 0 {
				continue
			}
			open = errors.Is(err, unix.EAGAIN)
			return true
		}
	})
	return open
}
