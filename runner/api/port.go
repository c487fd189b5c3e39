package api

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Port is a port of a container that is opened on 127.0.0.1.
type Port struct {
	Host     int // 0 means any free port
	Port     int // in the container
	Protocol string
}

func (p Port) String() string {
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

// OpenPort is the address of a port of a running task.
type OpenPort struct {
	Port    string `json:"port" doc:"of the container, like 8888/tcp"`
	Address string `json:"address" doc:"on this machine, like 127.0.0.1:49153"`
}

// URL returns the address as a URL for browsers, if it is a TCP port.
func (p OpenPort) URL() string {
	if strings.HasSuffix(p.Port, "/tcp") {
		return "http://" + p.Address
	}
	return p.Address
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
