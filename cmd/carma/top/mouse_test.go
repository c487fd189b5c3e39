package top

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// click clicks on the first place of a text on the screen.
func click(t *testing.T, m *app, text string) {
	t.Helper()
	for y, line := range strings.Split(picture(t, m), "\n") {
		if before, _, there := strings.Cut(line, text); there {
			_, cmd := m.Update(tea.MouseClickMsg{X: len([]rune(before)), Y: y, Button: tea.MouseLeft})
			if cmd != nil {
				m.Update(cmd())
			}
			return
		}
	}
	t.Fatalf("%q is not on the screen:\n%s", text, picture(t, m))
}

func wheel(m *app, b tea.MouseButton) { m.Update(tea.MouseWheelMsg{X: 5, Y: 12, Button: b}) }

// TestMouse checks at every width that a click selects a task, that a second click opens its
// details, that a click on a heading sorts, and that the wheel moves the cursor and scrolls.
func TestMouse(t *testing.T) {
	for _, width := range []int{80, 120, 300} {
		m := screenOf(t, lab(), width, 24)
		click(t, m, "paused  ")
		if m.task != 22 || m.screen != overview {
			t.Errorf("%d: task %d, screen %d\n%s", width, m.task, m.screen, picture(t, m))
		}
		click(t, m, "llama")
		if m.task != 24 || m.part != waiting {
			t.Errorf("%d: task %d\n%s", width, m.task, picture(t, m))
		}
		for heading, want := range map[string]string{"SLOW": "slowdown", "RUNNING": "name", "WAITING": "name", "MEM ": "memory", "LEFT": "left", "GPU   ": "place"} {
			m.view.order = 3
			click(t, m, heading)
			if got := orders[m.view.order].name; got != want && heading != "GPU   " || m.view.back {
				t.Errorf("%d: a click on %s sorts by %s, %v", width, heading, got, m.view.back)
			}
		}
		m.view.order = 0
		click(t, m, "RUNNING")
		click(t, m, "RUNNING")
		if orders[m.view.order].name != "name" || !m.view.back || m.task != 24 {
			t.Errorf("%d: twice on a heading: %+v, task %d", width, m.view, m.task)
		}
		if click(t, m, "WHY"); !strings.Contains(picture(t, m), "cannot be sorted by WHY") {
			t.Errorf("%d:\n%s", width, picture(t, m))
		}
		press(t, m, "home") // a line says how the lists are sorted
		first := m.task
		wheel(m, tea.MouseWheelDown)
		if _, row, _ := m.place(m.task); row != 3 || m.task == first {
			t.Errorf("%d: the wheel leads to row %d", width, row)
		}
		wheel(m, tea.MouseWheelUp)
		if m.task != first {
			t.Errorf("%d: back to %d, not %d", width, m.task, first)
		}
		click(t, m, "gpt2")
		click(t, m, "gpt2")
		if m.screen != details || m.pane.task.ID != 23 || !strings.Contains(picture(t, m), "details of task 23") {
			t.Errorf("%d: screen %d, task %d\n%s", width, m.screen, m.pane.task.ID, picture(t, m))
		}
	}
}

// TestMouseScrolls: the wheel scrolls output and does not answer a question, and the key M
// turns the mouse off.
func TestMouseScrolls(t *testing.T) {
	m := screenOf(t, lab(), 80, 24)
	press(t, m, "l", "home")
	wheel(m, tea.MouseWheelDown)
	if !strings.Contains(picture(t, m), " step 4 of 40\n") || strings.Contains(picture(t, m), " step 3 of 40\n") {
		t.Error(picture(t, m))
	}
	press(t, m, "esc", "x")
	task := m.task
	click(t, m, "paused  ")
	wheel(m, tea.MouseWheelDown)
	if m.asking.kind != toStop || m.task != task {
		t.Error("a click answers a question")
	}
	press(t, m, "n")
	if m.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("the mouse is off at first")
	}
	if press(t, m, "M"); m.View().MouseMode != tea.MouseModeNone || !strings.Contains(picture(t, m), "the mouse is the terminal's again") {
		t.Error("M does not turn it off:\n" + picture(t, m))
	}
	if press(t, m, "M"); m.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("M does not turn it on again")
	}
	m.Update(tea.WindowSizeMsg{Width: 40, Height: 8})
	m.Update(tea.MouseClickMsg{X: 3, Y: 3, Button: tea.MouseLeft})
	m.Update(tea.MouseClickMsg{X: 3, Y: 3, Button: tea.MouseRight})
}
