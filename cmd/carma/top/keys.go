package top

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"carma/runner/api"
)

const helpText = `up down, k j      move; page up, page down, home, end: further
enter             details of the task: estimate against use, attempts, reasons
l                 its output, as it comes; end follows, left and right scroll
w                 why it waits, or where it runs: as carma why
x                 stop it, after a question
h, r              hold it back from being launched; release it
z, u              suspend it: off its GPUs, not ended; resume it
t, b              move it before, behind the other waiting tasks of its owner
/                 show only tasks with these words in their name, user, group,
                  phase, image or number; or as carma ps --filter has it:
                  status=queued user=ann gpu=0; empty shows all
m                 only your own tasks, or all again
o, O              sort by the next of place, newest, name ...; turn it round
click, wheel      choose, twice: details; sort by a heading; move, or scroll
M                 leave the mouse to the terminal, to select text; take it back
g                 all GPUs, with what each task has there
esc               back; in the overview: show all tasks again
?                 this help
q, Ctrl-C         quit; tasks run on

Memory is in GiB. MEM is reserved on each GPU, USED is in use there now, EST is
the likeliest estimate. LEFT is the time to the end, SLOW how many times as
long as alone it takes; ~ marks a prediction. START IN is when a waiting task
is expected to start, as tasks run now; + means: or later.

In a bar each task begins with its number. Others' tasks can be looked at, not
stopped: the daemon says so.`

// asking is the question on the last line.
type asking struct {
	kind askingKind
	text string // text of the filter
	task api.Task
}

type askingKind int

const (
	nothing askingKind = iota
	forFilter
	toStop
)

func (a *asking) question(g *glyphs) string {
	what := "it gets its stop signal, and is killed after its grace"
	if a.task.Started.IsZero() {
		what = "it leaves the queue"
	}
	return fmt.Sprintf("Stop task %d (%s) of %s? y: yes, any other key: no. With y %s.", a.task.ID, g.cut(a.task.Name, 24), g.cut(a.task.User, 16), what)
}

// key carries out a key.
func (m *app) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return m.quit()
	case m.asking.kind == forFilter:
		m.typed(name, k.Text)
		return nil
	case m.asking.kind == toStop:
		task := m.asking.task
		m.asking = asking{}
		if name == "y" || name == "Y" {
			return m.act(&task, "is told to stop", func(ctx context.Context, ref string) error {
				_, err := m.d.Stop(ctx, ref, api.StopRequest{})
				return err
			})
		}
		m.say("nothing is stopped", nil)
		return nil
	}
	m.note = note{}
	if m.width < leastWidth || m.height < leastHeight {
		if name == "q" {
			return m.quit()
		}
		return nil
	}
	switch name {
	case "q":
		return m.quit()
	case "esc":
		m.back()
		return nil
	case "?", "f1":
		m.open(helping)
		return nil
	case "M":
		m.mouse = !m.mouse
		m.say(map[bool]string{true: "clicks and the wheel work here (M)", false: "the mouse is the terminal's again (M)"}[m.mouse], nil)
		return nil
	case "g":
		if m.screen == allGPUs {
			m.back()
		} else {
			m.open(allGPUs)
		}
		return nil
	}
	if m.scrolled(name) {
		return nil
	}
	if m.screen == overview && m.sees(name) {
		return nil
	}
	return m.ofTask(name)
}

func (m *app) quit() tea.Cmd {
	m.pane.close()
	return tea.Quit
}

// scrolled moves the cursor, or the text of a pane. It returns false if the key has
// another purpose.
func (m *app) scrolled(name string) bool {
	page := max(1, m.lists[m.part].rows-1)
	if m.screen != overview {
		page = max(1, m.height-6)
	}
	by := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdown": page, "space": page, "home": -1 << 30, "end": 1 << 30}[name]
	switch {
	case by == 0 && m.screen == output && (name == "left" || name == "right"):
		m.pane.side = max(0, m.pane.side+map[string]int{"left": -20, "right": 20}[name])
		return true
	case by == 0:
		return false
	case m.screen == overview:
		m.move(by)
	default:
		m.pane.tail = m.screen == output && name == "end"
		m.pane.first = max(0, min(1<<30, m.pane.first+by))
	}
	return true
}

// sees changes the selection or order of the lists. It returns false if the key has
// another purpose.
func (m *app) sees(name string) bool {
	switch name {
	case "/":
		m.asking = asking{kind: forFilter, text: m.view.text}
	case "m":
		m.view.mine = !m.view.mine
	case "o":
		m.view.order = (m.view.order + 1) % len(orders)
	case "O":
		m.view.back = !m.view.back
	default:
		return false
	}
	m.sort()
	return true
}

// typed handles a key while the filter is typed.
func (m *app) typed(name, text string) {
	a := &m.asking
	switch name {
	case "esc":
		m.asking = asking{}
	case "enter":
		if err := m.view.filter(strings.TrimSpace(a.text)); err != nil {
			m.say("", err)
		}
		m.asking = asking{}
		m.sort()
	case "backspace":
		if r := []rune(a.text); len(r) > 0 {
			a.text = string(r[:len(r)-1])
		}
	case "ctrl+u":
		a.text = ""
	case "ctrl+w":
		a.text = a.text[:strings.LastIndexByte(strings.TrimRight(a.text, " "), ' ')+1]
	default:
		a.text += text
	}
}

func (m *app) paste(text string) {
	if m.asking.kind == forFilter {
		m.asking.text += strings.Join(strings.Fields(text), " ")
	}
}

// back closes a pane, or removes the filter.
func (m *app) back() {
	m.pane.close()
	if m.screen != overview {
		m.screen, m.before = m.before, overview
		m.pane.first = 0
		return
	}
	m.view.mine = false
	_ = m.view.filter("")
	m.sort()
}

// open shows a screen. The help leads back to the previous one.
func (m *app) open(s screen) {
	if m.screen == s {
		return
	}
	m.pane.close()
	if m.before = overview; s == helping && m.screen == allGPUs {
		m.before = allGPUs
	}
	m.screen = s
	m.pane.first, m.pane.side, m.pane.tail = 0, 0, false
}

// ofTask applies a key's action to the selected task.
func (m *app) ofTask(name string) tea.Cmd {
	if !strings.Contains(" enter l w x h r z u t b ", " "+name+" ") {
		return nil
	}
	t := m.chosenTask()
	if t == nil {
		m.say("there is no task to choose", nil)
		return nil
	}
	change := func(does string, do func(context.Context, string) (api.Task, error)) tea.Cmd {
		return m.act(t, does, func(ctx context.Context, ref string) error { _, err := do(ctx, ref); return err })
	}
	switch name {
	case "enter":
		return m.look(details, t)
	case "w":
		return m.look(reasons, t)
	case "l":
		return m.read(t)
	case "x":
		m.asking = asking{kind: toStop, task: *t}
	case "h":
		return change("is held", func(ctx context.Context, ref string) (api.Task, error) { return m.d.Hold(ctx, ref, api.Note{}) })
	case "r":
		return change("is released", m.d.Release)
	case "z":
		return change("is being suspended", func(ctx context.Context, ref string) (api.Task, error) { return m.d.Suspend(ctx, ref, api.Note{}) })
	case "u":
		return change("comes back when there is room", m.d.Resume)
	case "t", "b":
		last := name == "b"
		does := map[bool]string{false: "goes before the others of its owner", true: "goes behind the others of its owner"}[last]
		return change(does, func(ctx context.Context, ref string) (api.Task, error) {
			return m.d.Move(ctx, ref, api.MoveRequest{Last: last})
		})
	}
	return nil
}

// patience is the longest time to wait for an answer.
const patience = 30 * time.Second

// acted is the result of an action.
type acted struct {
	text string
	err  error
}

// act applies an action to a task, and shows the result.
func (m *app) act(t *api.Task, does string, do func(ctx context.Context, ref string) error) tea.Cmd {
	ref, name := strconv.FormatInt(t.ID, 10), t.Name
	again := func() {}
	if m.feed != nil {
		again = m.feed.now
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := do(ctx, ref)
		again()
		return acted{fmt.Sprintf("task %s (%s) %s", ref, name, does), err}
	}
}
