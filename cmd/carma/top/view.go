package top

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/server"
	"carma/runner/api"
)

// The least size for the lists. A smaller screen shows a summary.
const (
	leastWidth  = 80
	leastHeight = 24
)

// View draws the screen.
func (m *app) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen, v.WindowTitle = true, "carma top"
	if m.mouse { // without the mouse, text can be selected in the terminal
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// lines returns the lines of the screen: height lines, none wider than width.
func (m *app) lines() []string {
	if m.width == 0 || m.height == 0 {
		return nil
	}
	if m.width < leastWidth || m.height < leastHeight {
		return m.small()
	}
	lines := m.top()
	switch m.screen {
	case overview:
		lines = append(lines, m.gpuTable()...)
		lines = append(lines, m.startedTable()...)
		lines = append(lines, m.waitingTable()...)
	default:
		lines = append(lines, m.pane.view(m, m.height-len(lines)-1)...)
	}
	for len(lines) < m.height {
		lines = append(lines, "")
	}
	if m.screen == overview {
		lines[m.height-2] = m.glyphs.fit(cli.Printable(m.about()), m.width)
	}
	last := m.bottom()
	return append(lines[:m.height-len(last)], last...)
}

// top returns the first line and the troubles below it.
func (m *app) top() []string {
	where := m.info.Source
	if where != "" {
		where += ", "
	}
	left := fmt.Sprintf(" carma  %spolicy %s", where, m.info.Policy)
	right := m.counts() + "  " + m.time().Local().Format("15:04:05") + " "
	room := m.width - cli.Cells(right) - 1
	lines := []string{marked.of(m.glyphs.fit(left, room) + " " + right)}
	for _, t := range m.troubles() {
		lines = append(lines, bad.of(m.glyphs.fit(" ! "+cli.Printable(t), m.width)))
	}
	if s := m.chosen(); s != "" {
		lines = append(lines, warn.of(m.glyphs.fit(" "+s, m.width)))
	}
	return lines
}

// counts lists the number of tasks of each kind.
func (m *app) counts() string {
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{{m.info.Running, "running"}, {m.info.Queued, "queued"}, {m.info.Suspended, "suspended"}, {m.info.Held, "held"}} {
		if c.n > 0 || c.word == "running" || c.word == "queued" {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	return strings.Join(parts, ", ")
}

// troublesShown is the largest number of lines for troubles.
const troublesShown = 2

// troubles returns the lines about problems that prevent tasks from starting or the view
// from reading the daemon's state.
func (m *app) troubles() (lines []string) {
	if m.lost != "" {
		lines = append(lines, fmt.Sprintf("%s since %s; what is shown is old; trying again", m.lost, m.since.Local().Format("15:04:05")))
	}
	if m.info.Paused != nil {
		lines = append(lines, "launching is paused"+cli.ClosedBy(m.info.Paused))
	}
	for _, t := range m.info.Trouble {
		lines = append(lines, t.String())
	}
	if more := len(lines) - troublesShown; more > 0 {
		lines = append(lines[:troublesShown-1], fmt.Sprintf("%d more: carma info", more+1))
	}
	return lines
}

// chosen describes the filter and the order of the lists, if they are not the default.
func (m *app) chosen() string {
	var parts []string
	if m.view.mine {
		parts = append(parts, "only your tasks (m)")
	}
	if m.view.text != "" {
		parts = append(parts, "only "+cli.Printable(m.view.text)+" (/)")
	}
	if o := orders[m.view.order]; m.view.order > 0 || m.view.back {
		s := "by " + o.name
		if m.view.back {
			s += ", the other way round"
		}
		parts = append(parts, s+" (o, O)")
	}
	return strings.Join(parts, "; ")
}

// gpuLines returns the number of rows for the GPUs in the overview.
func (m *app) gpuLines() int {
	return min(len(m.gpus), max(3, m.height*2/5-1))
}

// layout divides the height between the lists.
func (m *app) layout() {
	left := m.height - 2 - len(m.top()) - (1 + m.gpuLines()) - 2
	above, below := len(m.lists[started].tasks), len(m.lists[waiting].tasks)
	half := left / 2
	switch {
	case above <= half:
		below = left - above
	case below <= half:
		above = left - below
	default:
		above, below = half, left-half
	}
	m.lists[started].rows, m.lists[waiting].rows = max(1, min(above, left-1)), max(1, below)
	if len(m.lists[started].tasks) == 0 {
		m.lists[started].rows, m.lists[waiting].rows = 1, max(1, left-1)
	}
}

// bottom returns the last one or two lines: a question, the result of a key, or the keys.
func (m *app) bottom() (lines []string) {
	lines = []string{""}
	over := func(text string, as sgr) {
		lines = wrapped(cli.Printable(text), m.width-2)
		lines = lines[:min(len(lines), 2)]
		for i, l := range lines {
			lines[i] = as.of(m.glyphs.fit(" "+l, m.width))
		}
	}
	switch {
	case m.asking.kind == forFilter:
		left := " only: "
		text := m.asking.text
		for cli.Cells(text) > m.width-cli.Cells(left)-30 && text != "" {
			_, text, _ = strings.Cut(text, string([]rune(text)[:1]))
		}
		lines[0] = bold.of(m.glyphs.fit(left+text+"_   (words, or status=running; enter, esc)", m.width))
	case m.asking.kind != nothing:
		over(m.asking.question(m.glyphs), bad)
	case m.note.text != "" && m.now().Before(m.note.until):
		as := bold
		if m.note.bad {
			as = bad
		}
		over(m.note.text, as)
	default:
		lines[0] = marked.of(m.glyphs.fit(" "+m.keys(), m.width))
	}
	return lines
}

// keys returns the most useful keys of the screen, as many as fit in full.
func (m *app) keys() string {
	all := []string{"? help", "q quit", "enter details", "l logs", "w why", "x stop", "/ filter", "m mine", "g GPUs", "o sort", "h hold", "r release", "z suspend", "u resume", "t first", "b last"}
	switch m.screen {
	case output:
		all = []string{"esc back", "q quit", "end follow", "up/down", "left/right", "w why", "enter details", "x stop", "? help"}
	case helping, allGPUs, details, reasons:
		all = []string{"esc back", "q quit", "up/down", "enter details", "l logs", "w why", "x stop", "g GPUs", "? help"}
	}
	text := ""
	for _, k := range all {
		if cli.Cells(text)+2+cli.Cells(k) > m.width-2 {
			break
		}
		text += k + "  "
	}
	return strings.TrimSpace(text)
}

// small returns a summary for a window that is too small for the lists.
func (m *app) small() []string {
	lines := wrapped("carma: "+m.counts(), m.width)
	counts := len(lines)
	for _, t := range m.troubles() {
		lines = append(lines, wrapped("! "+cli.Printable(t), m.width)...)
	}
	for i := range m.gpus {
		if text := smallGPU(&m.gpus[i], m.width); text != "" {
			lines = append(lines, text)
		}
	}
	end := fmt.Sprintf("The lists need %dx%d; this window has %dx%d. q quits", leastWidth, leastHeight, m.width, m.height)
	last := wrapped(end, m.width)
	if room := m.height - len(last); len(lines) > room {
		lines = lines[:max(0, room)]
		if counts > room { // half a sentence would mislead
			lines = nil
		}
	}
	lines = append(lines, last...)
	return lines[:min(len(lines), m.height)]
}

// smallGPU returns the longest line about a GPU that fits, or empty if none does. A cut
// figure would mislead.
func smallGPU(g *api.GPU, width int) string {
	var numbers []string
	for _, r := range g.Tasks {
		numbers = append(numbers, strconv.FormatInt(r.Task, 10))
	}
	short := fmt.Sprintf("GPU %d: %s/%s", g.Index, cli.GiB(g.Used), cli.GiB(g.Capacity))
	for _, text := range []string{
		fmt.Sprintf("GPU %d: %s of %s GiB used, SMACT %s, tasks %s", g.Index, cli.GiB(g.Used), cli.GiB(g.Capacity), server.SMACT(*g), cmp.Or(strings.Join(numbers, ", "), "none")),
		fmt.Sprintf("GPU %d: %s of %s GiB used", g.Index, cli.GiB(g.Used), cli.GiB(g.Capacity)), short,
	} {
		if cli.Cells(text) <= width {
			return text
		}
	}
	return ""
}
