package containerstest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

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
	// Size returns the size of its terminal, and a channel that is closed when it
	// changes; false: it has none.
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
	// Look tells of its machine: hostname, address (where that name leads), groups,
	// core (soft and hard limit), first (which process it is), size:FOLDER and
	// node:DEVICE.
	Look func(what string) string
	// Signal is the stop signal that has come. Serve greets one client of a port.
	Signal func() string
	Serve  func(port string) error
	// Fork starts one more process, which waits; nil: it cannot.
	Fork func() error
}

// watchedAfter is how long "hog" waits after its start before it takes memory. By
// then an engine surely watches for the kernel's out-of-memory kills. It begins
// to watch after the start: of a program that lived for 20 ms, Docker 20.10 once
// reported only the kill.
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
//	privileges         print its capabilities, and whether it can gain some
//	interfaces capabilities devices  print the program's own
//	look:WHAT          print what Proc.Look says
//	await              wait for the stop signal and print it
//	serve:PORT         print "serving", and greet one client
//	hog:N              use N MiB of memory, after a moment: see [watchedAfter]
//	fork:N             start up to N processes, print "forked" and how many
//	input              print "got" and each line of the input, at its end "ended"
//	count-input        print the number of lines of the input
//	ask:TEXT           print the text without a newline, read a line, print "got" and it
//	terminal           print the terminal's rows and columns, or "no terminal"
//	resized            wait until the terminal has a size, then print it as above
//	resized:N          wait until the terminal has N rows
//	notebook:ADDRESS      answer TCP connections with "a notebook" until the stop signal
//	get:ADDRESS        print the answer of a TCP server
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
		case "processors":
			status, _ := p.ReadFile("/proc/self/status")
			for line := range strings.Lines(string(status)) {
				if name, list, _ := strings.Cut(line, ":"); name == "Cpus_allowed_list" {
					p.print(p.Stdout, strings.TrimSpace(list)+"\n")
				}
			}
		case "privileges":
			status, _ := p.ReadFile("/proc/self/status")
			for line := range strings.Lines(string(status)) {
				if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "Seccomp:") {
					p.print(p.Stdout, strings.ReplaceAll(strings.TrimSpace(line), "\t", " ")+"\n")
				}
			}
		case "devices":
			p.print(p.Stdout, strings.Join(p.Devices(), " ")+"\n")
		case "look":
			p.print(p.Stdout, p.Look(rest)+"\n")
		case "await":
			select {
			case <-p.Term:
				p.print(p.Stdout, p.Signal()+"\n")
			case <-p.Kill:
				return 137
			}
		case "serve":
			p.print(p.Stdout, "serving\n")
			if err := p.Serve(rest); err != nil {
				p.print(p.Stderr, err.Error()+"\n")
				return 1
			}
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
		case "input":
			for {
				line, ok := p.line()
				if !ok {
					p.print(p.Stdout, "ended\n")
					break
				}
				p.print(p.Stdout, "got "+line+"\n")
			}
		case "count-input":
			lines, in := 0, bufio.NewScanner(p.Stdin)
			for in.Scan() {
				lines++
			}
			p.print(p.Stdout, strconv.Itoa(lines)+"\n")
		case "ask":
			p.print(p.Stdout, rest)
			line, _ := p.line()
			p.print(p.Stdout, "got "+line+"\n")
		case "terminal":
			p.terminal(func(containers.Size) bool { return true })
		case "resized":
			p.terminal(func(s containers.Size) bool { return s != containers.Size{} && (n == 0 || int(s.Rows) == n) })
		case "notebook":
			if err := p.notebook(rest); err != nil {
				p.print(p.Stderr, err.Error()+"\n")
				return 1
			}
		case "get":
			c, err := net.Dial("tcp", rest)
			if err != nil {
				p.print(p.Stderr, err.Error()+"\n")
				return 1
			}
			_, _ = io.Copy(p.Stdout, c)
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

// LongLine is the line of n bytes that "long:n" prints. It consists of numbered
// blocks, so that a lost or repeated piece shows.
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

// line reads a line of the input, one byte after the other: what follows is for the
// next reader.
func (p *Proc) line() (string, bool) {
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := p.Stdin.Read(b)
		if n > 0 && b[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r"), true
		}
		line = append(line, b[:n]...)
		if err != nil {
			return string(line), len(line) > 0
		}
	}
}

// terminal prints the size of the terminal when it is as wanted.
func (p *Proc) terminal(wanted func(containers.Size) bool) {
	size, changed, ok := p.Size()
	for ok && !wanted(size) {
		select {
		case <-changed:
		case <-p.Kill:
			return
		}
		size, changed, ok = p.Size()
	}
	if !ok {
		p.print(p.Stdout, "no terminal\n")
		return
	}
	p.print(p.Stdout, fmt.Sprintf("%d x %d\n", size.Rows, size.Cols))
}

// notebook answers connections until the stop signal.
func (p *Proc) notebook(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	p.print(p.Stdout, "listening\n")
	go func() {
		select {
		case <-p.Term:
		case <-p.Kill:
		}
		_ = l.Close()
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		_, _ = io.WriteString(c, "a notebook\n")
		_ = c.Close()
	}
}

// gate polls: a container FROM scratch has no tool to wait for a file.
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
