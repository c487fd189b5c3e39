package top

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestActions checks that each key performs the action in the help on the selected task, a stop
// only after y, that a refusal of the daemon is shown, and that tasks of others are not
// changed.
func TestActions(t *testing.T) {
	for _, row := range []struct {
		keys []string
		done string // empty if no action is expected
		says string
	}{
		{[]string{"x", "y"}, "stop 17", "task 17 (resnet-lr-0.001) is told to stop"},
		{[]string{"x", "n"}, "", "nothing is stopped"},
		{[]string{"x", "enter"}, "", "nothing is stopped"},
		{[]string{"x", "esc"}, "", "nothing is stopped"},
		{[]string{"h"}, "hold 17", "is held"},
		{[]string{"r"}, "release 17", "is released"},
		{[]string{"z"}, "suspend 17", "is being suspended"},
		{[]string{"u"}, "resume 17", "comes back"},
		{[]string{"t"}, "top 17", "goes before"},
		{[]string{"b"}, "bottom 17", "goes behind"},
		{[]string{"end", "h"}, "hold 25", "task 25 (held) is held"},
		{[]string{"end", "home", "down", "k", "j", "h"}, "hold 18", ""},
		{[]string{"down", "down", "x", "y"}, "", "task 21 is bob's: you may not stop it"},
		{[]string{"down", "down", "z"}, "", "you may not suspend it"},
		{[]string{"enter", "h"}, "hold 17", "is held"},
		{[]string{"w", "x", "y"}, "stop 17", "is told to stop"},
		{[]string{"/", "z", "q", "z", "enter", "x"}, "", "there is no task to choose"},
	} {
		f := lab()
		m := screenOf(t, f, 80, 24)
		press(t, m, row.keys...)
		if got := strings.Join(f.done, ","); got != row.done {
			t.Errorf("%v: %q is done, want %q", row.keys, got, row.done)
		}
		if text := picture(t, m); !strings.Contains(strings.ReplaceAll(text, "\n", ""), row.says) {
			t.Errorf("%v: %q is not said:\n%s", row.keys, row.says, text)
		}
	}
}

// TestFilter checks that words and the filters of ps select tasks, and that a wrong filter
// gives a message and changes nothing.
func TestFilter(t *testing.T) {
	for text, want := range map[string]string{
		"ann": "17 23 25", "ANN gpt": "23", "status=queued": "24 23", "user=bob": "21 22", "gpu=0": "17 18", "bert christopher": "18", "模型": "21", "2": "21 22 23 24 25", "nobody": "", "status=quued": "17 18 21 22 24 23 25",
	} {
		m := screenOf(t, lab(), 120, 40)
		press(t, m, append(append([]string{"/"}, typed(text)...), "enter")...)
		var got []string
		for _, l := range m.lists {
			for _, task := range l.tasks {
				got = append(got, itoa(task.ID))
			}
		}
		slices.Sort(got)
		fields := strings.Fields(want)
		slices.Sort(fields)
		if !slices.Equal(got, fields) {
			t.Errorf("%q shows %v, want %v", text, got, fields)
		}
		if wrong := strings.Contains(text, "quued"); wrong != m.note.bad {
			t.Errorf("%q: %+v", text, m.note)
		}
	}
	m := screenOf(t, lab(), 120, 40)
	press(t, m, "/", "a", "b", "backspace", "ctrl+u", "b", "o", "b", "enter")
	if !strings.Contains(picture(t, m), "RUNNING 2 of 4") || !strings.Contains(picture(t, m), "only bob (/)") {
		t.Error(picture(t, m))
	}
	if press(t, m, "esc"); !strings.Contains(picture(t, m), "RUNNING 4 ") {
		t.Error("esc does not show all:\n" + picture(t, m))
	}
	press(t, m, "m")
	if text := picture(t, m); !strings.Contains(text, "RUNNING 1 of 4") || strings.Contains(text, " bob ") {
		t.Error("mine:\n" + text)
	}
}

// TestOrders checks that the key o selects one order after the other, and that O reverses the
// order.
func TestOrders(t *testing.T) {
	m := screenOf(t, lab(), 120, 40)
	want := map[string]string{"place": "17 18 21 22", "newest": "22 21 18 17", "name": "18 22 17 21", "user": "17 21 22 18", "memory": "21 18 17 22", "time": "21 17 22 18", "left": "17 18 21 22", "slowdown": "17 18 21 22"}
	for range orders {
		name := orders[m.view.order].name
		order := func() string {
			var got []string
			for _, task := range m.lists[started].tasks {
				got = append(got, itoa(task.ID))
			}
			return strings.Join(got, " ")
		}
		there := order()
		if there != want[name] {
			t.Errorf("by %s: %s, want %s", name, there, want[name])
		}
		press(t, m, "O")
		back := strings.Fields(order())
		slices.Reverse(back)
		if strings.Join(back, " ") != there {
			t.Errorf("by %s: %s, and back %s", name, there, order())
		}
		press(t, m, "O", "o")
	}
	if m.view.order != 0 {
		t.Error("o does not come back")
	}
}

// TestOutput: output scrolls, stays at its end while it is followed, and scrolls sideways.
// Another user's output is refused in the view.
func TestOutput(t *testing.T) {
	m := screenOf(t, lab(), 80, 24)
	press(t, m, "l")
	if text := picture(t, m); !strings.Contains(text, "step 40 of 40") || strings.Contains(text, "red") || !m.pane.tail {
		t.Error(text)
	}
	press(t, m, "home")
	if text := picture(t, m); !strings.Contains(text, " step 1 of 40\n") || strings.Contains(text, "step 40") {
		t.Error(text)
	}
	press(t, m, "right")
	if text := picture(t, m); strings.Contains(text, "step 1 of 40") {
		t.Error(text)
	}
	press(t, m, "left", "pgdown", "end")
	if text := picture(t, m); !strings.Contains(text, "step 40 of 40") {
		t.Error(text)
	}
	press(t, m, "esc", "down", "down", "l")
	if text := picture(t, m); !strings.Contains(text, "task 21 is bob's; its output is for its owner") {
		t.Error(text)
	}
	if press(t, m, "esc"); m.screen != overview || m.pane.end != nil {
		t.Error("esc does not lead back, or the stream goes on")
	}
}

// TestPanes checks that esc closes a screen, that g opens and closes the GPUs, and that only q
// and Ctrl-C end the view.
func TestPanes(t *testing.T) {
	m := screenOf(t, lab(), 80, 24)
	for _, row := range []struct {
		key  string
		want screen
	}{{"g", allGPUs}, {"?", helping}, {"esc", allGPUs}, {"g", overview}, {"enter", details}, {"w", reasons}, {"g", allGPUs}, {"esc", overview}, {"esc", overview}, {"Z", overview}} {
		if press(t, m, row.key); m.screen != row.want {
			t.Errorf("%s leads to %d, want %d", row.key, m.screen, row.want)
		}
	}
	for _, k := range []tea.Key{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		for _, height := range []int{24, 5} {
			m := screenOf(t, lab(), 80, height)
			if _, cmd := m.Update(tea.KeyPressMsg(k)); cmd == nil || cmd() != (tea.QuitMsg{}) {
				t.Errorf("%v does not quit in a window of %d lines", k, height)
			}
		}
	}
}

// TestCursor: the cursor stays on its task when the lists change, and moves to the task at its
// position when its task is no longer listed.
func TestCursor(t *testing.T) {
	f := crowd(4, 200)
	m := screenOf(t, f, 80, 24)
	press(t, m, "end")
	last := m.task
	if text := picture(t, m); !strings.Contains(text, ">") || !strings.Contains(text, itoa(last)) {
		t.Error("the end is not on the screen:\n" + text)
	}
	press(t, m, "pgup", "up")
	at := m.task
	gone := f.tasks[20]
	gone.Phase = "cancelled"
	m.Update(changed{gone})
	if m.task != at || !strings.Contains(picture(t, m), ">") {
		t.Errorf("the cursor went from %d to %d", at, m.task)
	}
	f.tasks = slices.DeleteFunc(f.tasks, func(t2 taskOf) bool { return t2.ID == at })
	m.Update(snapshot{info: f.info, gpus: f.gpus, tasks: f.tasks, whole: true})
	if m.task == at || m.tasks[m.task] == nil || !strings.Contains(picture(t, m), ">") {
		t.Errorf("the cursor is on %d", m.task)
	}
}

// TestClosedOutput: closing a pane while its task still writes ends the stream and all
// its readers.
func TestClosedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := lab()
		f.endless = true
		m := screenOf(t, f, 80, 24)
		press(t, m, "l")
		if text := picture(t, m); !strings.Contains(text, "step 40 of 40") {
			t.Error(text)
		}
		press(t, m, "esc")
		time.Sleep(time.Second) // synctest fails if a goroutine still waits then
	})
}
