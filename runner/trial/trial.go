package trial

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"carma/containers"
)

// Trials are the containers of this daemon's trials. It is safe for concurrent use.
type Trials struct {
	driver   containers.Driver
	instance string

	mu    sync.Mutex
	names map[string]bool // until they are removed
}

// New returns the trials of a daemon, whose instance is in the containers' names.
func New(driver containers.Driver, instance string) *Trials {
	return &Trials{driver: driver, instance: instance, names: map[string]bool{}}
}

// Name names the container of a trial, and keeps it from the sweep until over is called.
func (t *Trials) Name(purpose string) (name string, over func()) {
	name = fmt.Sprintf("carma-%s-%s-%s", t.instance, purpose, strings.ToLower(rand.Text()[:8]))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[name] = true
	return name, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.names, name)
	}
}

// Has reports whether a trial with this name is in progress.
func (t *Trials) Has(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[name]
}

// Run runs a created container to its end and returns its output.
func (t *Trials) Run(ctx context.Context, id string) (lines []string, err error) {
	if err := t.driver.Start(ctx, id); err != nil {
		return nil, err
	}
	exit, err := t.driver.Wait(ctx, id)
	if err != nil {
		return nil, err
	}
	err = t.Read(ctx, id, false, func(line string) { lines = append(lines, line) })
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the container of the proof ended with code %d: %s", exit.Code, strings.Join(lines, "; "))
	}
	return lines, err
}

// Read calls do with each line of a container's output. With follow it returns when the
// container has ended.
func (t *Trials) Read(ctx context.Context, id string, follow bool, do func(line string)) error {
	var last string
	return t.driver.Logs(ctx, id, time.Time{}, follow, func(_ time.Time, _ containers.Stream, line []byte, partial bool) {
		if last += string(line); !partial {
			do(last)
			last = ""
		}
	})
}
