package top

import (
	"context"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

// told is the daemon's answer about a task.
type told struct {
	id   int64
	task api.Task
	why  api.Why
	err  error
}

// logged contains lines of a task's output.
type logged struct {
	serial int
	lines  []api.LogLine
	done   bool
	over   string // how the task ended
	err    error
}

// look opens a pane about a task, and requests its content.
func (m *app) look(s screen, t *api.Task) tea.Cmd {
	m.open(s)
	if m.pane.task.ID != t.ID {
		m.pane.why = nil
	}
	m.pane.task, m.pane.err = *t, nil
	return m.question()
}

// question requests the content for the pane's task.
func (m *app) question() tea.Cmd {
	m.pane.asked = m.now()
	id := m.pane.task.ID
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		a := told{id: id}
		ref := strconv.FormatInt(id, 10)
		if a.why, a.err = m.d.Why(ctx, ref); a.err == nil {
			a.task, a.err = m.d.Task(ctx, ref)
		}
		return a
	}
}

// askedAgain is the largest age of a pane's content.
const askedAgain = 3 * time.Second

// again requests the content for the pane's task again when it is too old.
func (m *app) again() tea.Cmd {
	if m.screen != details && m.screen != reasons || m.now().Sub(m.pane.asked) < askedAgain || m.pane.why != nil && m.pane.task.Finished() {
		return nil
	}
	return m.question()
}

// readLines is the number of last lines of output that are requested.
const readLines = 2000

// read shows a task's output as it arrives.
func (m *app) read(t *api.Task) tea.Cmd {
	m.open(output)
	p := &m.pane
	p.task, p.err, p.over, p.piece, p.log, p.tail = *t, nil, "", "", nil, true
	p.serial++
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	lines := make(chan api.LogLine, 256)
	p.next = make(chan logged)
	go m.stream(ctx, t.ID, p.serial, lines, p.next)
	return p.wait()
}

// stream reads output until ctx ends, and passes it on in bundles, so that a flood causes
// few redraws.
func (m *app) stream(ctx context.Context, id int64, serial int, lines chan api.LogLine, next chan logged) {
	defer close(next)
	last := logged{}
	go func() {
		defer close(lines)
		task, err := m.d.Logs(ctx, strconv.FormatInt(id, 10), api.LogOptions{Follow: true, Tail: readLines}, func(l api.LogLine) error {
			select {
			case lines <- l:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if last.err = err; err == nil {
			last.over = "the task " + ending(&task)
		}
	}()
	for open := true; open; {
		some := logged{serial: serial}
		var l api.LogLine
		if l, open = <-lines; open {
			some.lines, open = bundle(lines, l, bundled, keptLines)
		}
		if !open {
			some.done, some.err, some.over = true, last.err, last.over // lines is closed: nobody writes to it
		}
		select {
		case next <- some:
		case <-ctx.Done():
			for range lines { // until the reader has ended
			}
			return
		}
	}
}

// bundled is the time for which lines are collected.
const bundled = 150 * time.Millisecond

// wait returns a command that waits for more output.
func (p *pane) wait() tea.Cmd {
	next := p.next
	return func() tea.Msg { return <-next }
}

// close ends the pane's stream.
func (p *pane) close() {
	if p.end != nil {
		p.end()
		p.end = nil
	}
	p.serial++
}

func ending(t *api.Task) string {
	if t.Finished() {
		return cli.Ending(t)
	}
	return "is " + t.Phase
}
