// Package wire is the protocol between a simulated GPU server (package simgpu)
// and the tasks that run on it (package client): one JSON object per line, at
// most MaxLine bytes, over a unix socket. The conversation is described in
// package simgpu.
package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"carma/internal/units"
	"carma/mapper/model"
)

const (
	// Socket is the name of the socket in the server's folder. The folder is mounted into a
	// container, not the socket: it is a new file after every start of the daemon, and a
	// mount of the file would keep the old one.
	Socket = "gpu.sock"
	// Version is the only version of the protocol so far.
	Version = 1
	// MaxLine bounds a message; a longer one ends the connection.
	MaxLine = 64 << 10
)

// Operations of a client.
const (
	Hello = "hello" // first message, once: the client and its memory
	Alloc = "alloc" // take memory; answered by OK or OOM
	Free  = "free"  // give memory back; answered by OK
	Loads = "loads" // the load has changed; not answered
	Done  = "done"  // answer to State: it is so now
)

// Operations of a server.
const (
	Welcome = "welcome" // answer to Hello
	Pace    = "pace"    // at any time after Welcome
	State   = "state"   // the process is suspended, or continues; answered by Done
	OK      = "ok"
	OOM     = "oom"
	Error   = "error" // last message before the server hangs up
)

// States of a process, with the numbers of NVIDIA's driver (CUprocessState).
const (
	Running      = 0
	Locked       = 1 // it does not compute, its requests wait; its memory is on the GPU
	Checkpointed = 2 // and its memory is in host memory
)

// Load is a task's load on one GPU when alone on it: activity, 0 to 1, and the time of a
// training step in seconds, or 0 if unknown. Without SMACT the task does not compute now.
type Load struct {
	SMACT float64 `json:"smact"`
	SMOCC float64 `json:"smocc"`
	DRAMA float64 `json:"drama"`
	Step  float64 `json:"step,omitempty"`
}

// Request is a message of a client. What an operation does not use is left out.
type Request struct {
	Op string `json:"op"`

	// Hello: Task is 0 for a process that is not carma's. GPUs are UUIDs, beginnings of
	// UUIDs, indexes or "all", as in NVIDIA_VISIBLE_DEVICES. Loads has one entry for each
	// GPU the task computes on: the first ones of GPUs. Holds is memory it has already, by
	// UUID. ProcessState is the last server's state; At has the UUIDs of the GPUs it was
	// moved to, by the UUIDs of GPUs, which stay its names for them.
	Version int                    `json:"version,omitempty"`
	Task    model.TaskID           `json:"task,omitempty"`
	Attempt int                    `json:"attempt,omitempty"`
	Name    string                 `json:"name,omitempty"`
	GPUs    []string               `json:"gpus,omitempty"`
	Loads   []Load                 `json:"loads,omitempty"` // also Loads
	Holds   map[string]units.Bytes `json:"holds,omitempty"`

	ProcessState int               `json:"state,omitempty"`
	At           map[string]string `json:"at,omitempty"`

	// Alloc and Free: ID is repeated in the answer. Done: it is State's.
	ID    int64       `json:"id,omitempty"`
	GPU   string      `json:"gpu,omitempty"` // UUID
	Bytes units.Bytes `json:"bytes,omitempty"`
}

// Reply is a message of the server. What an operation does not use is left out.
type Reply struct {
	Op string `json:"op"`

	// Welcome: the GPUs that this client computes on.
	GPUs []GPU `json:"gpus,omitempty"`

	// Pace: seconds of training, as if alone on an A100, per second of wall
	// clock; and how much faster than the wall clock simulated time runs.
	Pace  float64 `json:"pace,omitempty"`
	Speed float64 `json:"speed,omitempty"`

	// State.
	ProcessState int               `json:"state,omitempty"`
	At           map[string]string `json:"at,omitempty"`

	// OK, OOM and State.
	ID int64 `json:"id,omitempty"`
	// OOM: the GPU's memory, the free part, and this client's memory.
	Total units.Bytes `json:"total,omitempty"`
	Free  units.Bytes `json:"free,omitempty"`
	Held  units.Bytes `json:"held,omitempty"`

	// Error: for people.
	Message string `json:"message,omitempty"`
}

// GPU is a device as a client sees it.
type GPU struct {
	UUID  string      `json:"uuid"`
	Index int         `json:"index"`
	Model string      `json:"model"`
	Total units.Bytes `json:"total"`
}

// Lines returns a scanner over the messages of r.
func Lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1024), MaxLine)
	return s
}

// Write sends a message in one call of w.Write.
func Write(w io.Writer, message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
