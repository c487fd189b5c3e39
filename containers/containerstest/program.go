package containerstest

import (
	"io"
	"strconv"
	"strings"

	"carma/containers"
)

// Proc is the environment of the suite's program. So the same program runs in a
// real container (command tool) and inside the [Fake].
type Proc struct {
	Args           []string
	Env            []string
	Dir            string
	User           string // uid:gid
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Size returns the size of its terminal and a channel that is closed when it changes,
	// or false if it has no terminal.
	Size func() (containers.Size, <-chan struct{}, bool)
	// Term is closed when the stop signal arrives. Kill is closed when the
	// program must return at once; a real container never closes it, it is simply
	// killed.
	Term, Kill <-chan struct{}
	ReadFile   func(path string) ([]byte, error)
	WriteFile  func(path string, data []byte) error
	// Interfaces are the names of its network interfaces. Capabilities is the
	// mask of its effective capabilities, as the kernel prints it.
	Interfaces   func() []string
	Capabilities func() string
	// Devices are the names of NVIDIA's nodes in its /dev.
	Devices func() []string
	// Look returns a fact about its machine: hostname, address (where that name leads),
	// groups, core (soft and hard limit), first (which process it is), size:FOLDER and
	// node:DEVICE.
	Look func(what string) string
	// Signal is the stop signal that has come. Serve greets one client of a port.
	Signal func() string
	Serve  func(port string) error
	// Fork starts one more process, which waits. It is nil where that is impossible.
	Fork func() error
}

// Run carries out the arguments in order, each a [verb] and after a colon what it is
// about, and returns the exit code.
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
