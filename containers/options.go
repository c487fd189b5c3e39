package containers

import (
	"context"
	"fmt"
	"iter"
	"path"
	"reflect"
	"strconv"

	"carma/containers/option"
)

// ContainerOptions are the options of docker run that go unchanged from a submission to
// the container. A submission and a [Spec] embed the same struct, so no field is lost on
// the way. A zero value leaves the option to the engine and the image.
//
// Options with a syntax stay texts, in the words of docker run, because the submission's
// texts are in the journal and in answers; package option parses them. In a Spec the
// daemon has checked and completed them: Groups are numbers, each of Tmpfs has a size,
// Devices are no folders, IPC is host only if the daemon allows it.
//
// The tags make each field a flag, a key of task files and a part of the API; see Field in
// package api.
type ContainerOptions struct {
	WorkDir string `json:"workdir,omitempty" maxLength:"4096" letter:"w" value:"folder" help:"working folder in the container"`
	ShmSize int64  `json:"shm_size,omitempty" minimum:"0" unit:"memory" help:"size of /dev/shm (default: half of its host memory)" doc:"size of /dev/shm in bytes; 0: the daemon's default"`
	// Pids counts threads too.
	Pids       int64    `json:"pids,omitempty" minimum:"0" value:"processes" help:"processes and threads it may have (default: the daemon's)" doc:"processes and threads it may have; 0: the daemon's default"`
	Ulimits    []string `json:"ulimits,omitempty" maxItems:"64" name:"ulimit" unit:"ulimit" value:"name=soft[:hard]" help:"limit of its processes, for example memlock=-1 or nofile=65536; may be repeated"`
	Tmpfs      []string `json:"tmpfs,omitempty" maxItems:"64" unit:"tmpfs" value:"folder[:options]" help:"folder in memory, for example /scratch:size=2G; its content counts as host memory; may be repeated"`
	Init       bool     `json:"init,omitempty" help:"a small first process takes in the children that its program leaves behind, and passes signals on"`
	IPC        string   `json:"ipc,omitempty" enum:"private,shareable,host" help:"private (default), shareable (the same here), or host if the daemon allows it"`
	Groups     []string `json:"group_add,omitempty" maxItems:"64" unit:"group" value:"group" help:"a further group of yours that it has, by the name or number of this machine; may be repeated"`
	Hostname   string   `json:"hostname,omitempty" unit:"hostname" value:"name" help:"its own name in the container (default: the engine's choice)"`
	StopSignal string   `json:"stop_signal,omitempty" unit:"signal" value:"signal" help:"signal that stops it, for example SIGINT (default: the image's, else SIGTERM)"`
	Ports      []string `json:"publish,omitempty" maxItems:"64" letter:"p" unit:"port" value:"[port:]port" help:"open a port of it on 127.0.0.1, for example 8888; may be repeated; carma port shows where"`
	Devices    []string `json:"devices,omitempty" maxItems:"64" name:"device" unit:"device" value:"path[:path]" help:"device of this machine that the administrator allows, for example /dev/infiniband/uverbs0; may be repeated"`
	// Interactive and TTY are docker's -i and -t: the program has an input, and a terminal,
	// see [Terminals]. Without either its input ends at once. On some engines, the input of
	// a program without a terminal ends when the first attached session is closed.
	Interactive bool `json:"interactive,omitempty" letter:"i" help:"it has an input: yours, while you are attached"`
	TTY         bool `json:"tty,omitempty" letter:"t" help:"it has a terminal; with -i yours, and carma attach takes it again"`
}

// IPCHost is the value of IPC that gives the container the host's IPC namespace.
const IPCHost = "host"

// Support lists the options that a driver supports, by the name of the field of
// [ContainerOptions]. An option without an entry is not supported, so a new field is
// refused until the driver names it. A nil Limit allows every value.
type Support map[string]Limit

// Limit returns why a driver cannot give a container an option as it is set, or "" if it
// can.
type Limit func(o *ContainerOptions) string

// Never returns a Limit that refuses every value. why says what to do instead.
func Never(why string) Limit { return func(*ContainerOptions) string { return why } }

// UnsupportedError reports an option that a driver does not support. It wraps
// [ErrUnsupported].
type UnsupportedError struct {
	Option string // as flags and files name it
	Driver string
	Why    string // may be empty
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("--%s: not possible on %s", e.Option, e.Driver)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Unwrap returns [ErrUnsupported].
func (e *UnsupportedError) Unwrap() error { return ErrUnsupported }

// CheckOptions returns an [UnsupportedError] for the first given option that the driver
// does not support, or nil.
func CheckOptions(d Driver, o *ContainerOptions) error {
	support := d.Supports()
	for field := range given(o) {
		limit, supported := support[field.Name]
		why := ""
		if limit != nil {
			why = limit(o)
		}
		if !supported || why != "" {
			return &UnsupportedError{Option: option.Name(field.Tag), Driver: d.Name(), Why: why}
		}
	}
	return nil
}

// checkSyntax refuses options that no engine understands. The error wraps [ErrInvalid].
func (o *ContainerOptions) checkSyntax() error {
	wrong := func(name string, err error) error { return fmt.Errorf("%w: --%s: %w", ErrInvalid, name, err) }
	for field, value := range given(o) {
		read := option.Syntax(field.Tag.Get("unit"))
		if read == nil {
			continue
		}
		texts, list := value.Interface().([]string)
		if !list {
			texts = []string{value.String()}
		}
		for _, text := range texts {
			if _, err := read(text); err != nil {
				return wrong(option.Name(field.Tag), err)
			}
		}
	}
	for _, g := range o.Groups {
		if _, err := strconv.ParseUint(g, 10, 31); err != nil {
			return wrong("group-add", fmt.Errorf("%q is not a number", g))
		}
	}
	if o.WorkDir != "" && !path.IsAbs(o.WorkDir) {
		return wrong("workdir", fmt.Errorf("%q is not absolute", o.WorkDir))
	}
	return nil
}

// given iterates over the fields of options that are set, in their order.
func given(o *ContainerOptions) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(next func(reflect.StructField, reflect.Value) bool) {
		v := reflect.ValueOf(o).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() && !next(v.Type().Field(i), f) {
				return
			}
		}
	}
}

// Publisher is a driver that opens the ports of containers.
type Publisher interface {
	// Ports returns the open ports of a running container, with the host port of each. If
	// the engine opens no ports, the driver opens them, and keeps them open until it is
	// closed or the container has ended. Ports may be called again, also by another process.
	Ports(ctx context.Context, id string) ([]option.Port, error)
}

// InitTarget is the path of carma-init in containers that have it.
const InitTarget = "/.carma/init"
