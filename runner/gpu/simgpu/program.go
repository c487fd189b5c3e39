package simgpu

import (
	"carma/runner/gpu/simgpu/wire"
	"carma/runner/suspend"
)

// program is a process on the host with all its clients, the unit of suspension. It
// exists as long as it has a client.
type program struct {
	pid     int
	clients []*process // in order of arrival
	state   suspend.State
	// ours is set if this server has changed its state, so that no hello changes it.
	ours bool
	// busy is set while a call changes it.
	busy bool
	// open is closed when it runs again, or nil while it runs.
	open chan struct{}
}

// runs reports whether a client computes and gets answers.
func (c *process) runs() bool { return c.program == nil || c.program.state == suspend.Running }

// off reports whether a client has nothing on a GPU.
func (c *process) off() bool { return c.program != nil && c.program.state == suspend.Checkpointed }

// enter adds a client to its program. After a restart, clients of one program may report
// different last states, if the daemon died between them. Then the state furthest from
// the GPU counts, because the calls continue from there in both directions.
func (l *ledger) enter(c *process) {
	if c.pid <= 0 {
		return
	}
	p := l.programs[c.pid]
	if p == nil {
		p = &program{pid: c.pid}
		l.programs[c.pid] = p
		p.set(c.said)
	} else if c.said > p.state && !p.ours && !p.busy {
		p.move(c.said)
		p.tell()
	}
	c.program = p
	p.clients = append(p.clients, c)
	if told(p.state) != told(c.said) {
		c.hear()
	}
}

// set changes only the state.
func (p *program) set(state suspend.State) {
	p.state = state
	switch {
	case state == suspend.Running && p.open != nil:
		close(p.open)
		p.open = nil
	case state != suspend.Running && p.open == nil:
		p.open = make(chan struct{})
	}
}

// move changes the state, and moves the memory accordingly.
func (p *program) move(state suspend.State) {
	was := p.state == suspend.Checkpointed
	p.set(state)
	for _, c := range p.clients {
		switch {
		case was && !c.off():
			c.attach()
		case !was && c.off():
			c.detach()
		}
	}
}

// told returns the state as sent to clients, without the transitions during copying.
func told(state suspend.State) int {
	switch state {
	case suspend.Locked, suspend.Checkpointing:
		return wire.Locked
	case suspend.Checkpointed, suspend.Restoring:
		return wire.Checkpointed
	}
	return wire.Running
}

// tell sends the state to all clients.
func (p *program) tell() {
	for _, c := range p.clients {
		c.hear()
	}
}

// hear sends the program's state to a client.
func (c *process) hear() { c.hearOf(told(c.program.state)) }

// hearOf sends a state to a client before it becomes the program's.
func (c *process) hearOf(state int) {
	c.told++
	m := wire.Reply{Op: wire.State, ID: c.told, ProcessState: state}
	for _, u := range c.uses {
		if u.name != u.device.UUID {
			if m.At == nil {
				m.At = map[string]string{}
			}
			m.At[u.name] = u.device.UUID
		}
	}
	c.tell(m)
}

// quiet reports whether all clients have answered their last State.
func (p *program) quiet() bool {
	for _, c := range p.clients {
		if c.done < c.told {
			return false
		}
	}
	return true
}
