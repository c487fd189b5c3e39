// Package wire is the protocol between a simulated GPU server (package simgpu) and the
// tasks that run on it (package client): one JSON object per line, at most MaxLine bytes,
// over a unix socket. Package simgpu describes the conversation.
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
	// mount of the file would keep the old file.
	Socket = "gpu.sock"
	// Version is the only version of the protocol so far.
	Version = 1
	// MaxLine is the largest size of a message; a longer one ends the connection.
	MaxLine = 64 << 10
)

// Operations of a client.
const (
	Hello = "hello" // first message, once: the client and its memory
	Alloc = "alloc" // allocate memory; answered by OK or OOM
	Free  = "free"  // free memory; answered by OK
	Loads = "loads" // the load has changed; not answered
	Done  = "done"  // answer to State after it is applied
)

// Operations of a server.
const (
	Welcome = "welcome" // answer to Hello
	Pace    = "pace"    // at any time after Welcome
	State   = "state"   // the process is suspended, or continues; answered by Done
	OK      = "ok"
	OOM     = "oom"
	Error   = "error" // last message before the server disconnects
)

// States of a process, with the numbers of NVIDIA's driver (CUprocessState).
const (
	Running      = 0
	Locked       = 1 // it does not compute and its requests wait; its memory is on the GPU
	Checkpointed = 2 // as Locked, with its memory in host memory
)

// Load is a task's load on one GPU when alone on it: activity, 0 to 1, and the time of a
// training step in seconds, or 0 if unknown. If SMACT is 0, the task does not compute
// now.
type Load struct {
	SMACT float64 `json:"smact"`
	SMOCC float64 `json:"smocc"`
	DRAMA float64 `json:"drama"`
	Step  float64 `json:"step,omitempty"`
}

// Request is a message of a client. Fields that an operation does not use are omitted.
type Request struct {
	Op string `json:"op"`

	// Fields of Hello. Task is 0 for a process that does not belong to carma. GPUs lists
	// UUIDs, beginnings of UUIDs, indexes or "all", as in NVIDIA_VISIBLE_DEVICES. Loads
	// contains one entry for each GPU on which the task computes: the first ones of GPUs.
	// Holds is memory that it already has, by UUID. ProcessState is the last server's state.
	// At maps the UUIDs of GPUs, which stay its names for them, to the UUIDs of the GPUs to
	// which it was moved.
	Version int                    `json:"version,omitempty"`
	Task    model.TaskID           `json:"task,omitempty"`
	Attempt int                    `json:"attempt,omitempty"`
	Name    string                 `json:"name,omitempty"`
	GPUs    []string               `json:"gpus,omitempty"`
	Loads   []Load                 `json:"loads,omitempty"` // also in Loads
	Holds   map[string]units.Bytes `json:"holds,omitempty"`

	ProcessState int               `json:"state,omitempty"`
	At           map[string]string `json:"at,omitempty"`

	// Fields of Alloc and Free: ID is repeated in the answer. In Done, it is the ID of the
	// State.
	ID    int64       `json:"id,omitempty"`
	GPU   string      `json:"gpu,omitempty"` // UUID
	Bytes units.Bytes `json:"bytes,omitempty"`
}

// Reply is a message of the server. Fields that an operation does not use are omitted.
type Reply struct {
	Op string `json:"op"`

	// Fields of Welcome: the GPUs on which this client computes.
	GPUs []GPU `json:"gpus,omitempty"`

	// Fields of Pace: seconds of training, as if alone on an A100, per second of wall-clock
	// time; and simulated seconds per second of wall-clock time.
	Pace  float64 `json:"pace,omitempty"`
	Speed float64 `json:"speed,omitempty"`

	// Field of State.
	ProcessState int               `json:"state,omitempty"`
	At           map[string]string `json:"at,omitempty"`

	// Field of OK, OOM and State.
	ID int64 `json:"id,omitempty"`
	// Fields of OOM: the GPU's memory, the free part, and this client's memory.
	Total units.Bytes `json:"total,omitempty"`
	Free  units.Bytes `json:"free,omitempty"`
	Held  units.Bytes `json:"held,omitempty"`

	// Field of Error: a text for people.
	Message string `json:"message,omitempty"`
}

// GPU is a device as shown to a client.
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
