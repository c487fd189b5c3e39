package probe

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"carma/configs/models"
	"carma/containers"
)

// Limits of the output that is read from an untrusted program.
const (
	maxRecord = 4 << 20  // bytes of an encoded record
	maxOpen   = 64       // records with missing pieces
	maxPlain  = 32 << 20 // bytes of an unpacked record
	maxReason = 600
)

// record is a message of one process of the program.
type record struct {
	Kind   string          `json:"kind"` // partial, result, failed, ended
	PID    int             `json:"pid"`
	Reason string          `json:"reason"`
	Config json.RawMessage `json:"config"`
}

// hearer finds the probe's records in the output.
type hearer struct {
	mark []byte
	open map[string]*bytes.Buffer

	mu      sync.Mutex
	result  *record
	partial *record
	failed  string // the reason of the failure
	ended   string
	spoke   bool
}

func newHearer(mark string) *hearer {
	return &hearer{mark: []byte(mark + " "), open: map[string]*bytes.Buffer{}}
}

func (h *hearer) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.result != nil
}

// line reads one line of output: mark, process, record, piece, "." or "$" for the
// last piece, data.
func (h *hearer) line(line []byte) {
	at := bytes.Index(line, h.mark)
	if at < 0 {
		return
	}
	fields := bytes.Fields(line[at+len(h.mark):])
	if len(fields) != 5 {
		return
	}
	key := string(fields[0]) + " " + string(fields[1])
	piece, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return
	}
	buf := h.open[key]
	if buf == nil {
		if piece != 0 || len(h.open) >= maxOpen {
			return
		}
		buf = new(bytes.Buffer)
		h.open[key] = buf
	}
	if buf.Len()+len(fields[4]) > maxRecord {
		delete(h.open, key)
		return
	}
	buf.Write(fields[4])
	if string(fields[3]) == "$" {
		delete(h.open, key)
		if r, err := unpack(buf.Bytes()); err == nil {
			h.take(r)
		}
	}
}

func unpack(data []byte) (*record, error) {
	z, err := zlib.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxPlain+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxPlain {
		return nil, errors.New("record too long")
	}
	r := new(record)
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, err
	}
	r.Reason = sentence(r.Reason)
	return r, nil
}

func (h *hearer) take(r *record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spoke = true
	switch r.Kind {
	case "result":
		if h.result == nil {
			h.result = r
		}
	case "partial":
		h.partial = r
	case "failed":
		h.failed = r.Reason
	case "ended":
		h.ended = r.Reason
	}
}

// sentence makes one line of text, without control characters.
func sentence(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "..."
	}
	return s
}

// ending is the way in which the container ended. late is set if it was ended because its
// time was up.
type ending struct {
	containers.Exit
	late bool
}

// conclude turns the records into a configuration or a reason.
func conclude(h *hearer, end ending, limits Limits) (*models.Config, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.result != nil {
		return configOf(h.result)
	}
	reason := h.failed
	switch {
	case end.OOMKilled || (end.Code == 137 && !end.late && reason == ""):
		reason = fmt.Sprintf("the program needs more than the probe's %.3g GiB of memory", float64(limits.Memory)/(1<<30))
	case reason != "":
	case end.late:
		reason = fmt.Sprintf("no optimizer step within %g s", limits.Timeout.Seconds())
	case end.Error != "":
		reason = "the container could not run: " + sentence(end.Error)
	case h.ended != "":
		reason = h.ended
		if end.Code != 0 {
			reason += fmt.Sprintf(" (exit code %d)", end.Code)
		}
	case !h.spoke:
		reason = fmt.Sprintf("the image runs no Python program that could be probed (exit code %d)", end.Code)
	default:
		reason = fmt.Sprintf("the program ended without an optimizer step (exit code %d)", end.Code)
	}
	if h.partial == nil {
		return nil, &FailedError{reason}
	}
	config, err := configOf(h.partial)
	if err != nil {
		return nil, &FailedError{reason}
	}
	config.Warnings = append(config.Warnings, "only a part of a training step was seen: "+reason)
	return config, nil
}

func configOf(r *record) (*models.Config, error) {
	config, err := decode(r.Config)
	if err != nil {
		return nil, &FailedError{"the probe's record is not sound: " + sentence(err.Error())}
	}
	return config, nil
}
