package containerstest

import (
	"io"
	"strconv"
	"strings"

	"carma/containers"
)

// Proc is the environment of the suite's program. It allows the same program to run in a
// real container (command tool) and inside the [Fake].
type Proc struct {
	Args           []string
	Env            []string
	Dir            string
	User           string // uid:gid
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Size returns the size of the terminal and a channel that is closed when the size
	// changes, or false without a terminal.
	Size func() (containers.Size, <-chan struct{}, bool)
	// Term is closed when the stop signal arrives. Kill is closed when the program must
	// return at once. A real container never closes Kill, because its process is killed.
	Term, Kill <-chan struct{}
	ReadFile   func(path string) ([]byte, error)
	WriteFile  func(path string, data []byte) error
	// Interfaces returns the names of the network interfaces. Capabilities returns the mask
	// of the effective capabilities, as the kernel prints it.
	Interfaces   func() []string
	Capabilities func() string
	// Devices returns the names of NVIDIA's nodes in /dev.
	Devices func() []string
	// Look returns a fact about the machine: hostname, address (to which that name
	// resolves), groups, core (soft and hard limit), first (whether it is process 1), ipc
	// (its namespace), size:FOLDER and node:DEVICE.
	Look func(what string) string
	// Signal returns the stop signal that has arrived. Serve greets one client of a port.
	Signal func() string
	Serve  func(port string) error
	// Fork starts another process, which waits. It is nil where that is impossible.
	Fork func() error
}

// Run carries out the arguments in order and returns the exit code. Each argument is the
// name of a [verb], a colon and the verb's operand.
func (p *Proc) Run() int {
	for _, arg := range p.Args {
		name, rest, _ := strings.Cut(arg, ":")
		v, ok := verbs[name]
		if !ok {
			p.print(p.Stderr, "unknown argument "+arg+"\n")
			return 2
		}
		n, _ := strconv.Atoi(rest)
		if code := v(p, rest, n); code != goOn {
			return code
		}
	}
	return 0
}
