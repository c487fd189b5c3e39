package option

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Port is a port of a container that can be reached on 127.0.0.1 of this machine.
type Port struct {
	Port     int    // in the container
	Protocol string // tcp or udp
	Host     int    // on the machine; in a request, 0 means any free port
}

// String formats the port like 8888/tcp.
func (p Port) String() string { return fmt.Sprintf("%d/%s", p.Port, p.Protocol) }

// Text returns the text of the option, as [ParsePort] reads it.
func (p Port) Text() string {
	text := strconv.Itoa(p.Port)
	if p.Host > 0 {
		text = strconv.Itoa(p.Host) + ":" + text
	}
	if p.Protocol != "tcp" {
		text += "/" + p.Protocol
	}
	return text
}

// ParsePort parses [[127.0.0.1:][HOST]:]PORT[/tcp|/udp].
func ParsePort(text string) (p Port, err error) {
	rest, protocol, _ := strings.Cut(text, "/")
	p.Protocol = cmp.Or(strings.ToLower(protocol), "tcp")
	if p.Protocol != "tcp" && p.Protocol != "udp" {
		return p, fmt.Errorf("%q: %q is neither tcp nor udp", text, protocol)
	}
	i := strings.LastIndexByte(rest, ':')
	inside, outside := rest[i+1:], rest[:max(i, 0)]
	if j := strings.LastIndexByte(outside, ':'); j >= 0 {
		if address := outside[:j]; address != "127.0.0.1" {
			return p, fmt.Errorf("%q: ports are opened on 127.0.0.1 only, so that nobody outside this machine reaches them; write 127.0.0.1:%s:%s, and use ssh -L from elsewhere", text, outside[j+1:], inside)
		}
		outside = outside[j+1:]
	} else if strings.Contains(outside, ".") || outside == "localhost" {
		return p, fmt.Errorf("%q: a port of this machine is missing; write %s::%s for any that is free", text, "127.0.0.1", inside)
	}
	if p.Port, err = portNumber(text, inside); err != nil || outside == "" {
		return p, err
	}
	p.Host, err = portNumber(text, outside)
	return p, err
}

func portNumber(text, number string) (int, error) {
	if from, to, is := strings.Cut(number, "-"); is {
		return 0, fmt.Errorf("%q: ranges of ports are not possible; write each alone, from -p %s to -p %s", text, from, to)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("%q: %q is not a port from 1 to 65535; write for example 8888 or 8888:8888", text, number)
	}
	return n, nil
}

// ComparePorts sorts ports by their number in the container.
func ComparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Host, b.Host))
}
