package containerd

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"carma/containers"
	"carma/containers/option"
)

// labelPorts contains a container's ports: at first the requested ones, then the opened
// ones, so that another process opens the same ports again.
const labelPorts = ownLabels + "ports"

var _ containers.Publisher = (*Driver)(nil)

// doors contains the open ports of one container. containerd opens none, so this process
// listens on the machine's loopback and connects to the loopback inside the container's
// network namespace. That needs no other network, and reaches programs that listen only
// on loopback.
type doors struct {
	ports     []option.Port
	inside    *os.File // the container's network namespace
	listeners []net.Listener

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]bool
}

// Ports opens the ports of a running container, unless this process has already done so.
func (d *Driver) Ports(ctx context.Context, id string) ([]option.Port, error) {
	what := "ports of container " + id
	defer d.lock(id)()
	r, err := d.look(ctx, id)
	if err != nil {
		return nil, d.fail(ctx, what, err)
	}
	if !r.running() {
		return nil, nil
	}
	if err := d.open(ctx, r, r.task.Pid); err != nil {
		return nil, d.fail(ctx, what, err)
	}
	if all, ok := d.doors.Load(id); ok {
		return all.(*doors).ports, nil
	}
	return nil, nil
}

// open opens the ports of the container whose first process is pid. The caller holds the
// container's lock.
func (d *Driver) open(ctx context.Context, r *record, pid uint32) error {
	asked := readPorts(r.Labels[labelPorts])
	if _, open := d.doors.Load(r.ID); open || len(asked) == 0 {
		return nil
	}
	inside, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	all := &doors{inside: inside, conns: map[net.Conn]bool{}}
	for _, p := range asked {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Host)))
		if err != nil {
			all.close()
			return fmt.Errorf("port %d/tcp of this machine is taken: %w", p.Host, err)
		}
		p.Host = l.Addr().(*net.TCPAddr).Port
		all.listeners, all.ports = append(all.listeners, l), append(all.ports, p)
	}
	if err := d.note(ctx, r.ID, map[string]string{labelPorts: showPorts(all.ports)}); err != nil {
		all.close()
		return err
	}
	d.doors.Store(r.ID, all)
	for i, l := range all.listeners {
		go all.serve(l, all.ports[i].Port)
	}
	return nil
}

// closePorts closes the ports of a container, if this process has opened them.
func (d *Driver) closePorts(id string) {
	if all, open := d.doors.LoadAndDelete(id); open {
		all.(*doors).close()
	}
}

func (a *doors) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shut = true
	for _, l := range a.listeners {
		_ = l.Close()
	}
	for c := range a.conns {
		_ = c.Close()
	}
	_ = a.inside.Close()
}

// serve accepts clients until the listener is closed.
func (a *doors) serve(l net.Listener, port int) {
	for {
		outer, err := l.Accept()
		if err != nil {
			return
		}
		go a.join(outer, port)
	}
}

// join connects a client with the container's port. If the program does not listen, join
// closes the connection, as Docker does.
func (a *doors) join(outer net.Conn, port int) {
	defer outer.Close()
	inner, err := a.dial(port)
	if err != nil {
		return
	}
	defer inner.Close()
	if !a.keep(outer, inner) {
		return
	}
	defer a.forget(outer, inner)
	var both sync.WaitGroup
	for _, pair := range [2][2]net.Conn{{outer, inner}, {inner, outer}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// keep registers connections that must be closed with the ports. It returns false if the
// ports are already closed.
func (a *doors) keep(conns ...net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range conns {
		a.conns[c] = true
	}
	return !a.shut
}

func (a *doors) forget(conns ...net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range conns {
		delete(a.conns, c)
	}
}

// dial connects to a port from inside the container's network namespace.
func (a *doors) dial(port int) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread, and with it the namespace, ends with the goroutine
		a.mu.Lock()
		if err = net.ErrClosed; !a.shut {
			err = unix.Setns(int(a.inside.Fd()), unix.CLONE_NEWNET)
		}
		a.mu.Unlock()
		if err == nil {
			conn, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		}
	}()
	<-done
	return conn, err
}

// showPorts formats ports as 8888:0, container port first.
func showPorts(all []option.Port) string {
	var words []string
	for _, p := range all {
		words = append(words, fmt.Sprintf("%d:%d", p.Port, p.Host))
	}
	return strings.Join(words, " ")
}

func readPorts(text string) (all []option.Port) {
	for _, word := range strings.Fields(text) {
		p := option.Port{Protocol: "tcp"}
		if n, _ := fmt.Sscanf(word, "%d:%d", &p.Port, &p.Host); n == 2 {
			all = append(all, p)
		}
	}
	return all
}
