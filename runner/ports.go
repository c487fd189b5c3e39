package runner

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"carma/containers"
	"carma/containers/option"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/request"
)

// privilegedPort is the first port that every user may listen on.
const privilegedPort = 1024

// checkPorts refuses ports that a task of who cannot have.
func checkPorts(who request.Caller, s api.Submit) error {
	for _, text := range s.Ports {
		p, err := option.ParsePort(text)
		if err != nil {
			return request.Errorf(422, "--publish %v", err)
		}
		if p.Host > 0 && p.Host < privilegedPort && !mayMountAll(who.UID) {
			return request.Errorf(403, "--publish %s: ports below %d are root's; write %d for any that is free", text, privilegedPort, p.Port)
		}
	}
	return nil
}

// portBook holds the addresses at which the ports of running attempts are open. Workers
// write it.
type portBook struct {
	mu      sync.Mutex
	open    map[gpu.AttemptKey][]api.OpenPort
	changed chan struct{} // closed and replaced at every change
}

func newPortBook() *portBook {
	return &portBook{open: map[gpu.AttemptKey][]api.OpenPort{}, changed: make(chan struct{})}
}

// of returns the open ports of an attempt, and a channel that is closed when the ports of
// any attempt change.
func (b *portBook) of(key gpu.AttemptKey) ([]api.OpenPort, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[key], b.changed
}

// set stores the open ports of an attempt; an empty list removes the attempt.
func (b *portBook) set(key gpu.AttemptKey, ports []api.OpenPort) {
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

// openPorts opens the container's ports if its engine does not do it, and records their
// addresses. closed removes the addresses.
func (w *worker) openPorts(ctx context.Context, id string) (closed func()) {
	key := w.key()
	publisher, can := engine.As[containers.Publisher](w.Driver)
	if len(w.rec.Submit.Ports) == 0 || !can {
		return func() {}
	}
	var open []option.Port
	_, err := w.engine.Retry(ctx, func() error {
		return engine.Within(ctx, engine.AttachedLimit, "look for ports", func(ctx context.Context) (err error) { open, err = publisher.Ports(ctx, id); return err })
	})
	if err != nil && ctx.Err() == nil {
		w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the ports of a task cannot be reached")
	}
	var list []api.OpenPort
	for _, p := range open {
		list = append(list, api.OpenPort{Port: p.String(), Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Host))})
	}
	w.ports.set(key, list)
	return func() { w.ports.set(key, nil) }
}

// sendPorts sends a follower of an attempt one line for each of its ports, once
// they are open.
func (r *Runner) sendPorts(ctx context.Context, s *sender, key gpu.AttemptKey) {
	for {
		open, changed := r.ports.of(key)
		for _, p := range open {
			line := api.LogLine{At: r.Clock.Time(), Attempt: key.Attempt, Stream: "carma", Line: fmt.Sprintf("port %s: %s", p.Port, p.URL())}
			if s.send("log", line) != nil {
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
