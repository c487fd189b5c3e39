// Package top is the live view of carma top: GPUs, tasks and the queue in a terminal,
// with keys for actions on tasks.
//
// The model has bubbletea's form: Update handles one message at a time, View draws the
// state. It sends the daemon no request while it draws: a feed sends changes, and the
// result of a key's action returns as a message.
package top

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"time"

	tea "charm.land/bubbletea/v2"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/pick"
	"carma/runner/api"
)

// daemon is the part of api.Client that the view needs.
type daemon interface {
	Info(context.Context) (api.Info, error)
	GPUs(context.Context) ([]api.GPU, error)
	Tasks(context.Context, api.ListOptions) ([]api.Task, error)
	Task(context.Context, string) (api.Task, error)
	Why(context.Context, string) (api.Why, error)
	Logs(context.Context, string, api.LogOptions, func(api.LogLine) error) (api.Task, error)
	WatchAll(context.Context, func(api.Task) error) error
	Stop(context.Context, string, api.StopRequest) (api.Task, error)
	Hold(context.Context, string, api.Note) (api.Task, error)
	Release(context.Context, string) (api.Task, error)
	Suspend(context.Context, string, api.Note) (api.Task, error)
	Resume(context.Context, string) (api.Task, error)
	Move(context.Context, string, api.MoveRequest) (api.Task, error)
}

// screen identifies the shown screen.
type screen int

const (
	overview screen = iota
	allGPUs         // each GPU with its tasks
	details         // a task: request, estimate against use, attempts
	reasons         // the output of carma why
	output          // a task's log
	helping
)

// app is the state of the view.
type app struct {
	d      daemon
	feed   *feed // nil in tests
	now    func() time.Time
	uid    int
	glyphs *glyphs

	width, height int
	screen        screen
	before        screen // the screen to which esc returns

	// From the daemon.
	info   api.Info
	infoAt time.Time // wall clock
	gpus   []api.GPU
	tasks  map[int64]*api.Task
	gone   map[int64]time.Time // finished tasks that are still shown, in wall-clock time
	in     map[int64]residence
	starts map[int64]*api.Start
	lost   string // reason why the daemon does not answer, or empty if it does
	since  time.Time

	// The user's selection.
	view  view
	lists [2]list
	part  int // the list with the cursor
	task  int64
	// atTop is set while the cursor stays on the first row, until it is moved.
	atTop bool
	mouse bool      // the program gets clicks and the wheel, not the terminal
	heads [2][]span // headings of the lists, as last drawn

	asking asking
	pane   pane
	note   note
}

// residence is the memory of a task on its GPUs: the largest amounts on one of them, in
// bytes.
type residence struct{ used, peak, grant int64 }

// view is the selection and order of the lists.
type view struct {
	text    string // the filter as typed
	words   []string
	filters pick.Selector
	mine    bool
	order   int
	back    bool // reversed
}

// note is a line with the result of a key, shown until the time until.
type note struct {
	text  string
	bad   bool
	until time.Time
}

// Messages of the feed.
type (
	// snapshot is the daemon's answer to a request for the state. If whole is set, tasks
	// contains all unfinished tasks, otherwise only tasks on a GPU.
	snapshot struct {
		info  api.Info
		gpus  []api.GPU
		tasks []api.Task
		whole bool
	}
	changed []api.Task // events
	lost    struct{ err error }
	start   struct {
		task int64
		at   *api.Start
	}
	tick time.Time
)

// goneFor is the time for which a finished task is still shown, in wall-clock time.
const goneFor = 20 * time.Second

func newModel(d daemon, now func() time.Time, uid int, g *glyphs) *app {
	m := &app{d: d, now: now, uid: uid, glyphs: g, atTop: true, mouse: true, tasks: map[int64]*api.Task{}, gone: map[int64]time.Time{}, starts: map[int64]*api.Start{}}
	m.view.filters.All = true
	return m
}

// Init starts the clock.
func (m *app) Init() tea.Cmd { return everySecond() }

func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(t time.Time) tea.Msg { return tick(t) })
}

// Update handles a message.
func (m *app) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.sort()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.MouseClickMsg:
		return m, m.clicked(msg.Mouse())
	case tea.MouseWheelMsg:
		m.wheeled(msg.Mouse())
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tick:
		m.forget()
		return m, tea.Batch(everySecond(), m.again())
	case snapshot:
		m.take(&msg)
	case changed:
		m.change(msg)
	case start:
		m.starts[msg.task] = msg.at
	case lost:
		m.loses(msg.err)
	case acted:
		m.say(msg.text, msg.err)
	case told:
		m.pane.told(m, &msg)
	case logged:
		return m, m.pane.logged(m, &msg)
	}
	return m, nil
}

// take stores the daemon's present answer.
func (m *app) take(s *snapshot) {
	if m.lost != "" {
		m.lost = ""
		m.say("the daemon is back", nil)
	}
	m.info, m.infoAt, m.gpus = s.info, m.now(), s.gpus
	if s.whole {
		for id, t := range m.tasks {
			if !t.Finished() {
				delete(m.tasks, id)
			}
		}
	}
	for i := range s.tasks {
		m.tasks[s.tasks[i].ID] = &s.tasks[i]
	}
	m.in = map[int64]residence{}
	for _, g := range m.gpus {
		for _, r := range g.Tasks {
			has := m.in[r.Task]
			m.in[r.Task] = residence{max(has.used, r.Used), max(has.peak, r.Peak), max(has.grant, r.Grant)}
		}
	}
	m.sort()
}

// change stores tasks that have changed. Their events lack the position in the queue, so
// it stays until the next request.
func (m *app) change(list []api.Task) {
	for i := range list {
		t := &list[i]
		old := m.tasks[t.ID]
		if old == nil && t.Finished() {
			continue
		}
		if old != nil && old.Phase == t.Phase {
			t.Position, t.Waits, t.WaitsCode, t.Progress = old.Position, old.Waits, old.WaitsCode, cmp.Or(t.Progress, old.Progress)
		}
		if t.Finished() && (old == nil || !old.Finished()) {
			m.gone[t.ID] = m.now()
		}
		m.tasks[t.ID] = t
	}
	m.sort()
}

// forget drops finished tasks that were shown for long enough, and data about tasks that
// are gone.
func (m *app) forget() {
	for id, at := range m.gone {
		if m.now().Sub(at) > goneFor {
			delete(m.gone, id)
			delete(m.tasks, id)
		}
	}
	for id := range m.starts {
		if t := m.tasks[id]; t == nil || cli.Placed(t) {
			delete(m.starts, id)
		}
	}
	m.sort()
}

func (m *app) loses(err error) {
	if m.lost == "" {
		m.since = m.now()
	}
	m.lost = "no daemon answers"
	if !cli.Away(err) || errors.Is(err, fs.ErrPermission) {
		m.lost = cli.Describe(err)
	}
}

// say shows a message for some time.
func (m *app) say(text string, err error) {
	m.note = note{text: text, until: m.now().Add(8 * time.Second)}
	if err != nil {
		m.note.text, m.note.bad = cli.Describe(err), true
	}
}

// time returns the daemon's time, which may run faster on simulated GPUs.
func (m *app) time() time.Time {
	speed := m.info.Speed
	if speed == 0 {
		speed = 1
	}
	now := m.now()
	if m.lost != "" { // the age of the shown data
		now = m.since
	}
	return m.info.Now.Add(time.Duration(float64(now.Sub(m.infoAt)) * speed))
}

// chosenTask returns the task to which keys apply, or nil.
func (m *app) chosenTask() *api.Task {
	if m.screen != overview && m.screen != allGPUs && m.pane.task.ID != 0 {
		if t := m.tasks[m.pane.task.ID]; t != nil {
			return t
		}
		return &m.pane.task
	}
	return m.tasks[m.task]
}

func ids(list []*api.Task) (all []int64) {
	for _, t := range list {
		all = append(all, t.ID)
	}
	return all
}
