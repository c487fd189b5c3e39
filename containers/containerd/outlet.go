package containerd

import (
	"io"
	"sync"
)

// outlet passes on a command's output. It waits for a session's writers. It drops the
// output after the session has closed or a writer has failed.
type outlet struct {
	set  chan struct{} // closed when the writers are set or the session has closed
	once sync.Once

	mu      sync.Mutex
	gone    chan struct{} // closed when the session has closed
	dropped bool
	writers [2]io.Writer
	err     error
}

func newOutlet() *outlet { return &outlet{set: make(chan struct{}), gone: make(chan struct{})} }

// join sets the writers.
func (o *outlet) join(stdout, stderr io.Writer) {
	o.mu.Lock()
	o.writers = [2]io.Writer{stdout, stderr}
	o.mu.Unlock()
	o.once.Do(func() { close(o.set) })
}

// leave drops all further output.
func (o *outlet) leave() {
	o.mu.Lock()
	if !o.dropped {
		o.dropped = true
		close(o.gone)
	}
	o.mu.Unlock()
	o.once.Do(func() { close(o.set) })
}

// fault returns a writer's error.
func (o *outlet) fault() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// write passes on a piece of stream 1 or 2.
func (o *outlet) write(stream uint8, p []byte) {
	if len(p) == 0 {
		return
	}
	<-o.set
	o.mu.Lock()
	to, drop := o.writers[stream-1], o.dropped
	o.mu.Unlock()
	if drop {
		return
	}
	if _, err := to.Write(p); err != nil {
		o.mu.Lock()
		o.err = err
		o.mu.Unlock()
		o.leave()
	}
}
