package simgpu

import (
	"net"
	"sync"
	"time"

	"carma/runner/gpu/simgpu/wire"
)

const (
	writeLimit = 5 * time.Second // a client that does not read for this long is disconnected
	queue      = 16              // answers waiting to be written; a full queue stops reading
)

// outbox writes to one connection and never delays its users: answers are queued, and
// only the latest speed and the latest state are sent.
type outbox struct {
	conn    net.Conn
	answers chan wire.Reply
	wake    chan struct{} // a pace or a state is waiting
	done    chan struct{} // run has ended

	mu     sync.Mutex
	latest wire.Reply // pace to send; an empty Op means none
	said   wire.Reply // state to send; an empty Op means none
}

func newOutbox(c net.Conn) *outbox {
	return &outbox{conn: c, answers: make(chan wire.Reply, queue), wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// pace replaces the pace to send. It never blocks.
func (o *outbox) pace(pace, speed float64) {
	o.mu.Lock()
	o.latest = wire.Reply{Op: wire.Pace, Pace: pace, Speed: speed}
	o.mu.Unlock()
	o.rouse()
}

// state replaces the state to send. It never blocks.
func (o *outbox) state(m wire.Reply) {
	o.mu.Lock()
	o.said = m
	o.mu.Unlock()
	o.rouse()
}

func (o *outbox) rouse() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// send queues an answer, or returns false if the connection is gone. It blocks while the
// queue is full: only that client's own next request waits for it.
func (o *outbox) send(r wire.Reply) bool {
	select {
	case o.answers <- r:
		return true
	case <-o.done:
		return false
	}
}

// finish lets run write the remaining queue, and waits for its end.
func (o *outbox) finish() {
	close(o.answers)
	<-o.done
}

// run writes until finish or a failed write. Then it closes the connection, which ends
// its reader.
func (o *outbox) run() {
	defer close(o.done)
	defer o.conn.Close()
	// Answers first: welcome comes before the first pace.
	for {
		select {
		case r, ok := <-o.answers:
			if !ok || !o.write(r) {
				return
			}
			continue
		default:
		}
		select {
		case r, ok := <-o.answers:
			if !ok || !o.write(r) {
				return
			}
		case <-o.wake:
			o.mu.Lock()
			pace, state := o.latest, o.said
			o.latest, o.said = wire.Reply{}, wire.Reply{}
			o.mu.Unlock()
			// The pace first, because a client that was greeted waits for it.
			if pace.Op != "" && !o.write(pace) || state.Op != "" && !o.write(state) {
				return
			}
		}
	}
}

func (o *outbox) write(r wire.Reply) bool {
	o.conn.SetWriteDeadline(time.Now().Add(writeLimit))
	return wire.Write(o.conn, r) == nil
}
