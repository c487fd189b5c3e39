package mps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Server is one MPS server of a control daemon.
type Server struct {
	PID int `json:"pid"`
	// Status is INITIALIZING, ACTIVE or FAULT. In FAULT the server accepts no new clients
	// until the affected ones have disconnected.
	Status  string   `json:"status"`
	Clients []Client `json:"clients,omitempty"`
}

// Client is a process connected to a server.
type Client struct {
	PID     int    `json:"pid"`
	GPU     string `json:"gpu,omitempty"` // the UUID, perhaps cut short, or "" if not reported
	Command string `json:"command,omitempty"`
}

// Fault is the status of a server that a client's fault has stopped.
const Fault = "FAULT"

// Servers queries the servers and their clients.
func (c *Control) Servers(ctx context.Context) ([]Server, error) {
	out, err := c.Ask(ctx, "get_server_list")
	if err != nil {
		return nil, err
	}
	var servers []Server
	for _, pid := range pids(out) {
		s := Server{PID: pid}
		// A server may end between the commands.
		if s.Status, err = c.Ask(ctx, fmt.Sprintf("get_server_status %d", pid)); err != nil {
			if errors.Is(err, ErrNotRunning) {
				return nil, err
			}
			continue
		}
		s.Status = strings.ToUpper(s.Status)
		list, err := c.Ask(ctx, fmt.Sprintf("get_client_list %d", pid))
		if err != nil {
			if errors.Is(err, ErrNotRunning) {
				return nil, err
			}
			continue
		}
		for _, client := range pids(list) {
			s.Clients = append(s.Clients, Client{PID: client})
		}
		servers = append(servers, s)
	}
	c.describe(ctx, servers)
	return servers, nil
}

// describe adds data about the clients from the command ps, which older drivers do not
// have.
func (c *Control) describe(ctx context.Context, servers []Server) {
	out, err := c.Ask(ctx, "ps")
	if err != nil {
		return
	}
	rows := processes(out)
	for i := range servers {
		for j := range servers[i].Clients {
			client := &servers[i].Clients[j]
			at := slices.IndexFunc(rows, func(p process) bool { return p.pid == client.PID && p.server == servers[i].PID })
			if at >= 0 {
				client.GPU, client.Command = rows[at].device, rows[at].command
			}
		}
	}
}

// Terminate disconnects a client from its server without harm to the others. A
// signal to a process with work on the GPU may harm them.
func (c *Control) Terminate(ctx context.Context, server, client int) error {
	_, err := c.Ask(ctx, fmt.Sprintf("terminate_client %d %d", server, client))
	return err
}

// pids reads a list of process numbers and ignores other words.
func pids(text string) []int {
	var list []int
	for word := range strings.FieldsSeq(text) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 && !slices.Contains(list, pid) {
			list = append(list, pid)
		}
	}
	return list
}

// process is a row of ps.
type process struct {
	pid, server int
	device      string
	command     string
}

// processes reads the table that ps prints, by the names of its columns: PID ID SERVER
// DEVICE NAMESPACE COMMAND ATTRIBUTES. Some drivers lack the last columns.
func processes(text string) []process {
	lines := bufio.NewScanner(strings.NewReader(text))
	if !lines.Scan() {
		return nil
	}
	columns := map[string]int{}
	for i, name := range strings.Fields(lines.Text()) {
		columns[strings.ToUpper(name)] = i
	}
	var rows []process
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		cell := func(name string) string {
			if i, ok := columns[name]; ok && i < len(words) {
				return words[i]
			}
			return ""
		}
		p := process{device: cell("DEVICE"), command: cell("COMMAND")}
		var err1, err2 error
		p.pid, err1 = strconv.Atoi(cell("PID"))
		p.server, err2 = strconv.Atoi(cell("SERVER"))
		if err1 == nil && err2 == nil {
			rows = append(rows, p)
		}
	}
	return rows
}
