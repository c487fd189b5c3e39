package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// guard decides to which addresses the daemon connects for users. Without it a user could
// have root's daemon send requests to services that listen on this machine or in the
// private network, and that trust every sender in this network.
//
// The check is made on the address of each connection, as the kernel gets it, after every
// name has been resolved. So a name that changes its address between a check and the
// connection cannot evade the check.
type guard struct {
	allow []Allowed
	// free allows every address, for the administrator's own channels.
	free bool
}

// Allowed is a host, or addresses, that the administrator allows.
type Allowed struct {
	Host string // small letters; empty for addresses
	Port string // empty for any
	Net  netip.Prefix
}

// ParseAllowed reads HOST, HOST:PORT, an address or NETWORK/BITS.
func ParseAllowed(text string) (Allowed, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return Allowed{Net: p.Masked()}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil {
		return Allowed{Net: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())}, nil
	}
	host, port := text, ""
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return Allowed{Net: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), Port: port}, nil
	}
	ok := host != "" && strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == "" && strings.Trim(port, "0123456789") == ""
	if !ok || strings.Trim(host, "0123456789.") == "" {
		return Allowed{}, fmt.Errorf("%q is neither a host, nor an address, nor a network; write for example ntfy.lab.example, 10.1.2.3 or 10.1.0.0/16", text)
	}
	return Allowed{Host: strings.ToLower(host), Port: port}, nil
}

// closed are the networks that are not the public internet, in addition to the networks
// that netip.Addr knows. They are from IANA's registries of special-purpose addresses.
var closed = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

func prefixes(list ...string) (all []netip.Prefix) {
	for _, text := range list {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// public reports whether an address belongs to the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.Zone() != "" {
		return false
	}
	return !slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(a) })
}

// errRefused means that the daemon may not connect to the address for users. It does not
// name the address, because that would reveal the network to users.
var errRefused = errors.New("it is at an address of this machine or of a private network; the administrator can allow it (allow, in its notify.yaml)")

// may reports whether a connection for a host may go to an address.
func (g guard) may(host string, at netip.AddrPort) bool {
	a := at.Addr().Unmap()
	for _, x := range g.allow {
		port := x.Port == "" || x.Port == fmt.Sprint(at.Port())
		if port && (x.Host != "" && x.Host == strings.TrimSuffix(strings.ToLower(host), ".") || x.Host == "" && x.Net.Contains(a)) {
			return true
		}
	}
	return g.free || public(a) && !ownAddress(a)
}

// ownAddress reports whether an address is one of this machine's, which may be public.
func ownAddress(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(at net.Addr) bool {
		n, ok := at.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(n.IP)
		return ok && own.Unmap() == a
	})
}

// dial connects to host:port, if that is allowed.
func (g guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 10 * time.Second, Control: func(network, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil || !strings.HasPrefix(network, "tcp") || !g.may(host, at) {
			return errRefused
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}
