package api

import "strings"

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
