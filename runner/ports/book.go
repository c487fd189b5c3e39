// Package ports owns the addresses at which the published ports of running attempts are
// open. Clients ask for them, or wait until they are open.
package ports

import (
	"context"
	"net"
	"strconv"
	"sync"

	"carma/containers/option"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/request"
)

// privilegedPort is the first port that every user may listen on.
const privilegedPort = 1024

// Check refuses ports that a task cannot have. privileged says that its user may have the
// ports of root.
func Check(list []string, privileged bool) error {
	for _, text := range list {
		p, err := option.ParsePort(text)
		if err != nil {
			return request.Errorf(422, "--publish %v", err)
		}
		if p.Host > 0 && p.Host < privilegedPort && !privileged {
			return request.Errorf(403, "--publish %s: ports below %d are root's; write %d for any that is free", text, privilegedPort, p.Port)
		}
	}
	return nil
}

// Book holds the addresses at which the ports of running attempts are open. Workers
// write it.
type Book struct {
	mu      sync.Mutex
	open    map[gpu.AttemptKey][]api.OpenPort
	changed chan struct{} // closed and replaced at every change
}

// New returns a book without ports.
func New() *Book {
	return &Book{open: map[gpu.AttemptKey][]api.OpenPort{}, changed: make(chan struct{})}
}

// Of returns the open ports of an attempt, and a channel that is closed when the ports of
// any attempt change.
func (b *Book) Of(key gpu.AttemptKey) ([]api.OpenPort, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[key], b.changed
}

// Set stores the open ports of an attempt; an empty list removes the attempt.
func (b *Book) Set(key gpu.AttemptKey, ports []api.OpenPort) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(ports) == 0 {
		delete(b.open, key)
	} else {
		b.open[key] = ports
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// Follow calls send for each port of an attempt, once they are open. It ends then, when send
// returns an error, and when ctx ends.
func (b *Book) Follow(ctx context.Context, key gpu.AttemptKey, send func(api.OpenPort) error) {
	for {
		open, changed := b.Of(key)
		for _, p := range open {
			if send(p) != nil {
				return
			}
		}
		if len(open) > 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ViewOpen returns the API form of ports that are open on this machine.
func ViewOpen(open []option.Port) (list []api.OpenPort) {
	for _, p := range open {
		list = append(list, api.OpenPort{Port: p.String(), Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Host))})
	}
	return list
}
