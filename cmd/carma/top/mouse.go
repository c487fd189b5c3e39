package top

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// wheelRows is the number of rows by which the wheel moves at a time.
const wheelRows = 3

// orderOf maps a column to the order for a click on it. Other titles have no effect. The
// columns of names begin with RUNNING and WAITING.
var orderOf = map[string]string{
	"#": "place", "GPU": "place", "ID": "newest", "USER": "user", "MEM": "memory", "USED": "memory",
	"TIME": "time", "LEFT": "left", "SLOW": "slowdown", "RUNNING": "name", "WAITING": "name",
}

// clicked selects the task in a row, or sorts by the heading. A click on the selected
// task opens its details.
func (m *app) clicked(at tea.Mouse) tea.Cmd {
	if at.Button != tea.MouseLeft || m.screen != overview || m.asking.kind != nothing || m.width < leastWidth || m.height < leastHeight {
		return nil
	}
	m.note = note{}
	y := len(m.top()) + 1 + m.gpuLines()
	for part := range m.lists {
		shown := m.window(part)
		switch row := at.Y - y - 1; {
		case row == -1:
			m.sortedBy(part, at.X-1) // the cell before the titles is for the cursor
			return nil
		case row >= 0 && row < len(shown):
			if shown[row].ID == m.task && !m.atTop {
				return m.look(details, shown[row])
			}
			m.part, m.task, m.atTop = part, shown[row].ID, false
			m.ask()
			return nil
		}
		y += 1 + max(1, len(shown))
	}
	return nil
}

// sortedBy sorts by the column at a cell, or reverses the order if it is already sorted
// by that column.
func (m *app) sortedBy(part, x int) {
	for _, s := range m.heads[part] {
		if x < s.from || x >= s.to {
			continue
		}
		word, _, _ := strings.Cut(s.title, " ")
		by := slices.IndexFunc(orders, func(o order) bool { return o.name == orderOf[word] })
		switch {
		case by < 0:
			m.say("the lists cannot be sorted by "+word, nil)
		case by == m.view.order:
			m.view.back = !m.view.back
		default:
			m.view.order, m.view.back = by, false
		}
	}
	m.sort()
}

// wheeled moves the cursor, or the text of a pane.
func (m *app) wheeled(at tea.Mouse) {
	name, is := map[tea.MouseButton]string{tea.MouseWheelUp: "up", tea.MouseWheelDown: "down", tea.MouseWheelLeft: "left", tea.MouseWheelRight: "right"}[at.Button]
	if !is || m.asking.kind != nothing {
		return
	}
	for range wheelRows {
		m.scrolled(name)
	}
}
