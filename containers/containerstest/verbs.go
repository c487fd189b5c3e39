package containerstest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"carma/containers"
)

// A verb runs one argument of the suite's program. It receives the text after the colon,
// also as a number, and returns the program's exit code, or [goOn].
type verb func(p *Proc, rest string, n int) int

const (
	goOn   = -1  // continue with the next argument
	killed = 137 // as a shell reports SIGKILL
)

var verbs = map[string]verb{
	// These verbs print a line.
	"out":          says(func(_ *Proc, rest string) string { return rest }),
	"long":         func(p *Proc, _ string, n int) int { return p.say(LongLine(n)) }, // a line of n bytes
	"env":          says(func(p *Proc, key string) string { return key + "=" + env(p.Env, key) }),
	"dir":          says(func(p *Proc, _ string) string { return p.Dir }),
	"user":         says(func(p *Proc, _ string) string { return p.User }), // uid:gid
	"args":         says(func(p *Proc, _ string) string { return strings.Join(p.Args, " ") }),
	"read":         says((*Proc).read),  // the text of the file, or "refused"
	"write":        says((*Proc).write), // "written" to the file, or "refused"
	"interfaces":   says(func(p *Proc, _ string) string { return strings.Join(p.Interfaces(), " ") }),
	"devices":      says(func(p *Proc, _ string) string { return strings.Join(p.Devices(), " ") }),
	"capabilities": says(func(p *Proc, _ string) string { return p.Capabilities() }),
	"look":         says(func(p *Proc, what string) string { return p.Look(what) }), // see [Proc]
	"privileges":   privileges,                                                      // its capabilities, and whether it can gain some
	"processors":   processors,                                                      // the processors on which it may run

	// These verbs print in other ways: to standard error, without a newline, or much.
	"err":    func(p *Proc, rest string, _ int) int { return p.print(p.Stderr, rest+"\n") },
	"raw":    func(p *Proc, rest string, _ int) int { return p.print(p.Stdout, rest) },
	"rawerr": func(p *Proc, rest string, _ int) int { return p.print(p.Stderr, rest) },
	"lines":  lines, // "out 1" and "err 1" to "out N" and "err N"
	"count":  count, // prints the numbers 1 to N, one per line, as fast as possible

	// These verbs read the input or the terminal.
	"input":       input,      // print "got" and each line, "ended" at its end
	"count-input": countInput, // print the number of lines
	"ask":         ask,        // print the text without a newline, read a line, print "got" and the line
	"terminal": func(p *Proc, _ string, _ int) int { // print its rows and columns, or "no terminal"
		return p.terminal(func(containers.Size) bool { return true })
	},
	"resized": func(p *Proc, _ string, n int) int { // wait for a size, or for N rows, then print it
		return p.terminal(func(s containers.Size) bool { return s != containers.Size{} && (n == 0 || int(s.Rows) == n) })
	},

	// These verbs use the network.
	"serve": func(p *Proc, port string, _ int) int { // print "serving", and greet one client
		p.say("serving")
		return p.ended(p.Serve(port))
	},
	"notebook": func(p *Proc, address string, _ int) int { // answer clients "a notebook" until the stop signal
		return p.ended(p.notebook(address))
	},
	"get": get, // print the answer of a TCP server

	// These verbs use memory and processes.
	"hog":  hog,  // allocate N MiB after [watchedAfter]
	"fork": fork, // start up to N processes, print "forked" and their number

	// These verbs wait or end.
	"await": func(p *Proc, _ string, _ int) int { // wait for the stop signal, and print it
		if !p.stopped() {
			return killed
		}
		return p.say(p.Signal())
	},
	"gate": (*Proc).gate, // wait until the file exists
	"block": func(p *Proc, _ string, n int) int { // wait for the stop signal, then exit with N
		if !p.stopped() {
			return killed
		}
		return n
	},
	"stubborn": func(p *Proc, _ string, _ int) int { <-p.Kill; return killed }, // ignore the stop signal
	"exit":     func(_ *Proc, _ string, n int) int { return n },
}

// says returns a verb that prints the result of f as a line.
func says(f func(p *Proc, rest string) string) verb {
	return func(p *Proc, rest string, _ int) int { return p.say(f(p, rest)) }
}

// LongLine returns the line of n bytes that "long:n" prints. It consists of numbered
// blocks, so that lost or repeated pieces can be detected.
func LongLine(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "<%d>", i)
	}
	return b.String()[:n]
}

func lines(p *Proc, _ string, n int) int {
	for i := 1; i <= n; i++ {
		p.print(p.Stdout, fmt.Sprintf("out %d\n", i))
		p.print(p.Stderr, fmt.Sprintf("err %d\n", i))
	}
	return goOn
}

func count(p *Proc, _ string, n int) int {
	w := bufio.NewWriterSize(p.Stdout, 64<<10)
	for i := 1; i <= n; i++ {
		_, _ = w.Write(append(strconv.AppendInt(w.AvailableBuffer(), int64(i), 10), '\n'))
	}
	_ = w.Flush()
	return goOn
}

func processors(p *Proc, _ string, _ int) int {
	status, _ := p.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if name, list, _ := strings.Cut(line, ":"); name == "Cpus_allowed_list" {
			p.say(strings.TrimSpace(list))
		}
	}
	return goOn
}

func privileges(p *Proc, _ string, _ int) int {
	status, _ := p.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "Seccomp:") {
			p.say(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "))
		}
	}
	return goOn
}

func input(p *Proc, _ string, _ int) int {
	for {
		line, ok := p.line()
		if !ok {
			return p.say("ended")
		}
		p.say("got " + line)
	}
}

func countInput(p *Proc, _ string, _ int) int {
	n, in := 0, bufio.NewScanner(p.Stdin)
	for in.Scan() {
		n++
	}
	return p.say(strconv.Itoa(n))
}

func ask(p *Proc, text string, _ int) int {
	p.print(p.Stdout, text)
	line, _ := p.line()
	return p.say("got " + line)
}

func get(p *Proc, address string, _ int) int {
	c, err := net.Dial("tcp", address)
	if err == nil {
		_, _ = io.Copy(p.Stdout, c)
	}
	return p.ended(err)
}

// watchedAfter is the time that "hog" waits before it allocates memory. An engine begins
// to watch for the kernel's out-of-memory kills only after the start: for a program that
// lived for 20 ms, Docker 20.10 once reported only the kill.
const watchedAfter = 300 * time.Millisecond

func hog(_ *Proc, _ string, n int) int {
	time.Sleep(watchedAfter)
	hog := make([]byte, n<<20)
	for i := 0; i < len(hog); i += 4096 {
		hog[i] = 1
	}
	runtime.KeepAlive(hog)
	return goOn
}

func fork(p *Proc, _ string, n int) int {
	done := 0
	for p.Fork != nil && done < n && p.Fork() == nil {
		done++
	}
	return p.say(fmt.Sprintf("forked %d", done))
}
