package containerstest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Proc is what the suite's program sees of the world, so that the same
// program runs in a real container (command tool) and inside the [Fake].
type Proc struct {
	Args           []string
	Env            []string
	Dir            string
	User           string // uid:gid
	Stdout, Stderr io.Writer
	// Term is closed when the stop signal arrives, Kill when the program must
	// return at once (never in a real container, which is simply killed).
	Term, Kill <-chan struct{}
	ReadFile   func(path string) ([]byte, error)
	WriteFile  func(path string, data []byte) error
	// Interfaces are the names of its network interfaces, Capabilities the
	// mask of those in effect as the kernel prints it.
	Interfaces   func() []string
	Capabilities func() string
	// Devices are the names of the GPUs' nodes in its /dev.
	Devices func() []string
	// Fork starts one more process, which waits; nil: it cannot.
	Fork func() error
}

// watchedAfter is long after an engine has begun to watch for the kernel to kill
// a container for its memory. It begins after the start: of a program that lives
// for 20 ms Docker 20.10 once said only that it was killed.
const watchedAfter = 300 * time.Millisecond

// Run carries out the arguments in order and returns the exit code:
//
//	out:TEXT err:TEXT  print a line
//	raw:TEXT rawerr:TEXT print without a newline
//	lines:N            print "out 1" and "err 1" to "out N" and "err N"
//	count:N            print the numbers 1 to N, a line each, as fast as possible
//	long:N             print one line of N bytes, see [LongLine]
//	env:KEY dir user args  print KEY=value, the folder, uid:gid, all arguments
//	read:PATH write:PATH   print the file's text, or "written", or "refused"
//	interfaces capabilities devices  print what it has of them
//	hog:N              use N MiB of memory, after a moment: see [watchedAfter]
//	fork:N             start up to N processes, print "forked" and how many
//	gate:PATH          wait until the file exists
//	block:N            wait for the stop signal, then exit with N
//	stubborn           ignore the stop signal and wait for the end
//	exit:N             exit with N
func (p *Proc) Run() int {
	for _, arg := range p.Args {
		verb, rest, _ := strings.Cut(arg, ":")
		n, _ := strconv.Atoi(rest)
		switch verb {
		case "out":
			p.print(p.Stdout, rest+"\n")
		case "err":
			p.print(p.Stderr, rest+"\n")
		case "raw":
			p.print(p.Stdout, rest)
		case "rawerr":
			p.print(p.Stderr, rest)
		case "lines":
			for i := 1; i <= n; i++ {
				p.print(p.Stdout, fmt.Sprintf("out %d\n", i))
				p.print(p.Stderr, fmt.Sprintf("err %d\n", i))
			}
		case "count":
			w := bufio.NewWriterSize(p.Stdout, 64<<10)
			for i := 1; i <= n; i++ {
				_, _ = w.Write(append(strconv.AppendInt(w.AvailableBuffer(), int64(i), 10), '\n'))
			}
			_ = w.Flush()
		case "long":
			p.print(p.Stdout, LongLine(n)+"\n")
		case "env":
			p.print(p.Stdout, rest+"="+env(p.Env, rest)+"\n")
		case "dir":
			p.print(p.Stdout, p.Dir+"\n")
		case "user":
			p.print(p.Stdout, p.User+"\n")
		case "args":
			p.print(p.Stdout, strings.Join(p.Args, " ")+"\n")
		case "read":
			p.print(p.Stdout, p.read(rest)+"\n")
		case "write":
			p.print(p.Stdout, p.write(rest)+"\n")
		case "interfaces":
			p.print(p.Stdout, strings.Join(p.Interfaces(), " ")+"\n")
		case "capabilities":
			p.print(p.Stdout, p.Capabilities()+"\n")
		case "devices":
			p.print(p.Stdout, strings.Join(p.Devices(), " ")+"\n")
		case "hog":
			time.Sleep(watchedAfter)
			hog := make([]byte, n<<20)
			for i := 0; i < len(hog); i += 4096 {
				hog[i] = 1
			}
			runtime.KeepAlive(hog)
		case "fork":
			done := 0
			for p.Fork != nil && done < n && p.Fork() == nil {
				done++
			}
			p.print(p.Stdout, fmt.Sprintf("forked %d\n", done))
		case "gate":
			if !p.gate(rest) {
				return 137
			}
		case "block":
			select {
			case <-p.Term:
				return n
			case <-p.Kill:
				return 137
			}
		case "stubborn":
			<-p.Kill
			return 137
		case "exit":
			return n
		default:
			p.print(p.Stderr, "unknown argument "+arg+"\n")
			return 2
		}
	}
	return 0
}

// LongLine is the line of n bytes that "long:n" prints: numbered blocks, so
// that a lost or repeated piece shows.
func LongLine(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "<%d>", i)
	}
	return b.String()[:n]
}

func (p *Proc) print(w io.Writer, s string) { _, _ = io.WriteString(w, s) }

func (p *Proc) read(path string) string {
	b, err := p.ReadFile(path)
	if err != nil {
		return "refused"
	}
	return string(bytes.TrimSpace(b))
}

func (p *Proc) write(path string) string {
	if err := p.WriteFile(path, []byte("written")); err != nil {
		return "refused"
	}
	return "written"
}

// gate polls because a file's appearance has no event in a FROM scratch image.
func (p *Proc) gate(path string) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := p.ReadFile(path); err == nil {
			return true
		}
		select {
		case <-tick.C:
		case <-p.Kill:
			return false
		}
	}
}
