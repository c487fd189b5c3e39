package settings

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// PagePort returns the loopback address and port in a value of web, or "" if there is
// none.
func PagePort(web string) (address string, err error) {
	if web == "off" || web == "auto" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(web)
	if err != nil {
		return "", fmt.Errorf("%q is not off, auto, or an address with a port; write for example 127.0.0.1:7070", web)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", fmt.Errorf("%q: %q is not a port from 1 to 65535, or 0 for a free one", web, port)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if at, err := netip.ParseAddr(host); err != nil || !at.IsLoopback() || at.Zone() != "" || at.Is4In6() {
		return "", fmt.Errorf("%q: other machines could reach %q; the page is served at 127.0.0.1 only, and by ssh from elsewhere: write 127.0.0.1:%s", web, host, port)
	}
	return net.JoinHostPort(host, port), nil
}

// PageSocket returns the path of the page's socket, beside the daemon's.
func PageSocket(socket string) (path string, err error) {
	path = strings.TrimSuffix(socket, ".sock") + "-web.sock"
	return path, validSocket(path)
}
