//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// On reports whether the points are active.
const On = true

var (
	mu      sync.Mutex
	handler = fromEnvironment()
)

// Handler is called at each point. If mayFail is set, its error is injected, otherwise
// ignored.
type Handler func(name string, mayFail bool) error

// Set replaces the handler, for a test in its own process. A handler may end the
// goroutine, which holds no locks unless mayFail is set.
func Set(f Handler) {
	mu.Lock()
	defer mu.Unlock()
	handler = f
}

// Hit marks a point.
func Hit(name string) { _ = reach(name, false) }

// Error marks a point at which a test may inject an error.
func Error(name string) error { return reach(name, true) }

func reach(name string, mayFail bool) error {
	mu.Lock()
	f := handler
	mu.Unlock()
	return f(name, mayFail)
}

// fromEnvironment returns the handler for CARMA_FAILPOINT.
func fromEnvironment() Handler {
	name, action, nth, err := parse(os.Getenv("CARMA_FAILPOINT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "CARMA_FAILPOINT:", err)
		os.Exit(2)
	}
	log := os.Getenv("CARMA_FAILPOINT_LOG")
	var mu sync.Mutex
	hits, noted := 0, map[string]bool{}
	return func(at string, _ bool) error {
		mu.Lock()
		defer mu.Unlock()
		if log != "" && !noted[at] {
			noted[at] = true
			note(log, at)
		}
		if at != name {
			return nil
		}
		if hits++; hits != nth {
			return nil
		}
		switch action {
		case "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the kill takes a moment
		case "hang":
			mu.Unlock() // other goroutines continue
			defer mu.Lock()
			select {}
		}
		return fmt.Errorf("failpoint %s", at)
	}
}

func parse(s string) (name, action string, nth int, err error) {
	if s == "" {
		return "", "", 0, nil
	}
	part := strings.Split(s, ":")
	if len(part) == 2 {
		part = append(part, "1")
	}
	if len(part) != 3 {
		return "", "", 0, errors.New("write NAME:ACTION or NAME:ACTION:N")
	}
	switch part[1] {
	case "kill", "hang", "error":
	default:
		return "", "", 0, fmt.Errorf("the action %q is none of kill, hang, error", part[1])
	}
	nth, err = strconv.Atoi(part[2])
	return part[0], part[1], nth, err
}

// note appends a name to the log. No sync is needed, because only the process may die,
// not the machine.
func note(path, name string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(name + "\n")
	_ = f.Close()
}
