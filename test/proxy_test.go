//go:build e2e

package test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// proxy forwards the daemon's connections to the engine. While it is cut, the engine seems to
// be down.
type proxy struct {
	t    *testing.T
	path string

	mu       sync.Mutex
	listener net.Listener // nil if it is cut
	conns    map[net.Conn]bool
}

// newProxy makes the socket in dir and lets connections through.
func newProxy(t *testing.T, dir string) *proxy {
	t.Helper()
	p := &proxy{t: t, path: filepath.Join(dir, "e"), conns: map[net.Conn]bool{}}
	t.Cleanup(p.cut)
	p.join()
	return p
}

func (p *proxy) host() string { return "unix://" + p.path }

// join lets connections through.
func (p *proxy) join() {
	p.t.Helper()
	l, err := net.Listen("unix", p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.connect(l, in)
		}
	}()
}

func (p *proxy) connect(l net.Listener, in net.Conn) {
	out, err := dialEngine()
	if err != nil {
		_ = in.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != l { // it was cut meanwhile
		_, _ = in.Close(), out.Close()
		return
	}
	p.conns[in], p.conns[out] = true, true
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = pair[0].Close(), pair[1].Close()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, pair[0])
		}()
	}
}

// cut breaks all connections and accepts no new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close() // removes the socket too
		p.listener = nil
	}
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func dialEngine() (net.Conn, error) {
	network, address, ok := strings.Cut(os.Getenv("DOCKER_HOST"), "://")
	if !ok {
		network, address = "unix", "/var/run/docker.sock"
	}
	return net.Dial(network, address)
}
