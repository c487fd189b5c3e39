package web

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// established is the state of an open connection in /proc/net/tcp. The kernel reports
// root as the owner of a socket that its program has closed, so entries in other states
// are ignored.
const established = "01"

// PeerOf returns the user of the program at the other end of a loopback connection, from
// the kernel's table of connections, or false if the connection is not listed.
func PeerOf(c net.Conn) (uid int, ok bool) {
	from, ok1 := addressOf(c.RemoteAddr())
	to, ok2 := addressOf(c.LocalAddr())
	if !ok1 || !ok2 || !from.Addr().IsLoopback() {
		return 0, false
	}
	table := "/proc/net/tcp"
	if from.Addr().Is6() {
		table = "/proc/net/tcp6"
	}
	f, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	return ownerIn(f, from, to)
}

func addressOf(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}

// ownerIn finds the owner of the open connection between two addresses in a table.
// Its columns are: number, local address, remote address, state, four others, uid.
func ownerIn(table io.Reader, from, to netip.AddrPort) (uid int, ok bool) {
	near, far := inTable(from), inTable(to)
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[1] != near || f[2] != far || f[3] != established {
			continue
		}
		uid, err := strconv.Atoi(f[7])
		return uid, err == nil
	}
	return 0, false
}

// inTable writes an address as the kernel does: words of 32 bits in the machine's
// order of bytes.
func inTable(a netip.AddrPort) string {
	var b strings.Builder
	raw := a.Addr().AsSlice()
	for ; len(raw) >= 4; raw = raw[4:] {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(raw))
	}
	return fmt.Sprintf("%s:%04X", b.String(), a.Port())
}
