package standin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// daemon is the state of the control daemon.
type daemon struct {
	multi   bool
	uid     int
	gpus    string
	threads string
	servers []*server
	next    int
	quit    bool
}

type server struct {
	pid     int
	status  string
	clients []client
}

type client struct {
	pid          int
	gpu, command string
}

// answer executes one command.
func (d *daemon) answer(words []string) (text string, ok bool) {
	if len(words) == 0 {
		return "", true
	}
	switch words[0] {
	case "quit":
		d.quit = true
		return "", true
	case "get_default_active_thread_percentage":
		return d.threads, true
	case "set_default_active_thread_percentage":
		if len(words) == 2 {
			d.threads = words[1]
			return d.threads, true
		}
	case "get_server_list":
		var list []string
		for _, s := range d.servers {
			list = append(list, strconv.Itoa(s.pid))
		}
		return strings.Join(list, "\n"), true
	case "ps":
		return d.ps(), true
	case "get_server_status", "get_client_list", "shutdown_server", "terminate_client":
		return d.ofServer(words)
	case "standin_connect", "standin_leave", "standin_fault":
		return d.play(words)
	}
	return "Unknown command: " + strings.Join(words, " "), false
}

func (d *daemon) ps() string {
	rows := []string{"PID       ID    SERVER DEVICE  NAMESPACE COMMAND"}
	for _, s := range d.servers {
		for i, c := range s.clients {
			rows = append(rows, fmt.Sprintf("%d %d %d %s %d %s", c.pid, i, s.pid, c.gpu, 4026531836, c.command))
		}
	}
	return strings.Join(rows, "\n")
}

// ofServer executes the commands that name a server.
func (d *daemon) ofServer(words []string) (string, bool) {
	if len(words) < 2 {
		return "Missing server PID", false
	}
	at := slices.IndexFunc(d.servers, func(s *server) bool { return strconv.Itoa(s.pid) == words[1] })
	if at < 0 {
		return "Server " + words[1] + " not found", false
	}
	s := d.servers[at]
	switch words[0] {
	case "get_server_status":
		return s.status, true
	case "get_client_list":
		var list []string
		for _, c := range s.clients {
			list = append(list, strconv.Itoa(c.pid))
		}
		return strings.Join(list, "\n"), true
	case "shutdown_server":
		d.servers = slices.Delete(d.servers, at, at+1)
		return "", true
	}
	if len(words) != 3 {
		return "Missing client PID", false
	}
	before := len(s.clients)
	s.clients = slices.DeleteFunc(s.clients, func(c client) bool { return strconv.Itoa(c.pid) == words[2] })
	if len(s.clients) == before {
		return "Client " + words[2] + " not found", false
	}
	return "", true
}

// play simulates the actions of clients.
func (d *daemon) play(words []string) (string, bool) {
	if len(words) < 2 {
		return "which client?", false
	}
	pid, err := strconv.Atoi(words[1])
	if err != nil {
		return "client " + words[1] + " is no number", false
	}
	if words[0] == "standin_connect" {
		if len(words) != 4 {
			return "standin_connect PID GPU COMMAND", false
		}
		return d.connect(client{pid: pid, gpu: words[2], command: words[3]})
	}
	for _, s := range d.servers {
		if !slices.ContainsFunc(s.clients, func(c client) bool { return c.pid == pid }) {
			continue
		}
		if words[0] == "standin_fault" {
			s.status = "FAULT"
		} else {
			s.clients = slices.DeleteFunc(s.clients, func(c client) bool { return c.pid == pid })
		}
		return "", true
	}
	return "no such client", false
}

// connect connects a client to the newest server, or to a new one. A server in FAULT
// refuses clients.
func (d *daemon) connect(c client) (string, bool) {
	if len(d.servers) == 0 {
		d.next++
		d.servers = append(d.servers, &server{pid: 100_000 + d.next, status: "ACTIVE"})
	}
	s := d.servers[len(d.servers)-1]
	if s.status != "ACTIVE" {
		return "CUDA_ERROR_MPS_SERVER_NOT_READY", false
	}
	s.clients = append(s.clients, c)
	return "", true
}
