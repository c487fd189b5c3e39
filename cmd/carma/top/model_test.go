package top

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"carma/cmd/carma/cli"
	"carma/runner/api"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(serverEnv); socket != "" {
		if err := serveCrowd(socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	time.Local = time.UTC
	os.Exit(m.Run())
}

// screenOf returns a view of a daemon in a window, at noon.
func screenOf(t *testing.T, f *fake, width, height int) *app {
	t.Helper()
	m := newModel(f, func() time.Time { return noon }, 1003, &unicodeGlyphs)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	f.mu.Lock()
	m.Update(snapshot{info: f.info, gpus: f.gpus, tasks: slices.Clone(f.tasks), whole: true})
	f.mu.Unlock()
	m.Update(start{24, &api.Start{Earliest: noon.Add(12 * time.Minute), Latest: noon.Add(90 * time.Minute)}})
	return m
}

// press types keys, one after the other, and delivers the results of their actions.
func press(t *testing.T, m *app, keys ...string) {
	t.Helper()
	special := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
		"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "backspace": {Code: tea.KeyBackspace}, "space": {Code: tea.KeySpace, Text: " "}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
	}
	for _, k := range keys {
		key, ok := special[k]
		if !ok {
			key = tea.Key{Code: []rune(k)[0], Text: k}
		}
		_, cmd := m.Update(tea.KeyPressMsg(key))
		for range 10 { // output is delivered in batches
			if cmd == nil {
				break
			}
			_, cmd = m.Update(cmd())
		}
	}
}

func typed(text string) (keys []string) {
	for _, r := range text {
		key := string(r)
		if r == ' ' {
			key = "space"
		}
		keys = append(keys, key)
	}
	return keys
}

// picture returns the screen as text, and checks that it has as many lines as the window and
// that no line is wider.
func picture(t *testing.T, m *app) string {
	t.Helper()
	lines := m.lines()
	if len(lines) > m.height {
		t.Errorf("%dx%d: %d lines", m.width, m.height, len(lines))
	}
	for i, l := range lines {
		lines[i] = ansi.Strip(l)
		if n := max(cli.Cells(lines[i]), ansi.StringWidth(l)); n > m.width {
			t.Errorf("%dx%d: line %d has %d cells: %q", m.width, m.height, i+1, n, lines[i])
		}
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestScreens compares every screen, in three windows, with testdata. UPDATE_SCREENS=1
// writes the files.
func TestScreens(t *testing.T) {
	screens := []struct {
		name string
		keys []string
	}{
		{"overview", nil}, {"gpus", []string{"g"}}, {"details", []string{"enter"}}, {"why", []string{"end", "up", "w"}}, {"output", []string{"l"}}, {"help", []string{"?"}},
		{"stop", []string{"down", "x"}}, {"filter", append([]string{"/"}, typed("ann")...)}, {"mine", []string{"m"}}, {"refused", []string{"down", "down", "x", "y"}},
	}
	for _, size := range [][2]int{{80, 24}, {120, 40}, {300, 80}} {
		for _, s := range screens {
			name := fmt.Sprintf("%s-%dx%d.txt", s.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				m := screenOf(t, lab(), size[0], size[1])
				press(t, m, s.keys...)
				golden(t, name, picture(t, m))
			})
		}
	}
	for _, size := range [][2]int{{79, 24}, {40, 10}, {20, 4}, {8, 2}, {1, 1}} {
		golden(t, fmt.Sprintf("small-%dx%d.txt", size[0], size[1]), picture(t, screenOf(t, lab(), size[0], size[1])))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_SCREENS") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is now (UPDATE_SCREENS=1 keeps it)\n%s\nwas\n%s", name, got, want)
	}
}

var number = regexp.MustCompile(`[0-9]+([.][0-9]+)?`)

// TestEverySize checks that for any window and any figures no line is too wide, and that the
// figures on the screen are not cut.
func TestEverySize(t *testing.T) {
	f := crowd(16, 500)
	for width := leastWidth; width <= 300; width += 11 {
		for _, height := range []int{24, 37, 80} {
			for _, g := range []*glyphs{&unicodeGlyphs, &asciiGlyphs} {
				m := screenOf(t, f, width, height)
				m.glyphs = g
				text := picture(t, m)
				for _, gpu := range m.gpus[:m.gpuLines()-1] {
					for _, figure := range []string{cli.GiB(gpu.Reserved), cli.GiB(gpu.Used), fmt.Sprintf("%.0fW", gpu.PowerW)} {
						if !slices.Contains(strings.Fields(text), figure) {
							t.Errorf("%dx%d: %s of GPU %d is not there:\n%s", width, height, figure, gpu.Index, text)
						}
					}
				}
				whole(t, m, text)
			}
		}
	}
}

// whole checks that the task numbers beside the GPUs are complete, not cut.
func whole(t *testing.T, m *app, text string) {
	t.Helper()
	for _, gpu := range m.gpus[:m.gpuLines()-1] {
		line := strings.Split(text, "\n")[1+len(m.top())+gpu.Index-0]
		_, names, found := strings.Cut(line, fmt.Sprintf("%.0fW ", gpu.PowerW))
		if !found {
			t.Fatalf("no power in %q", line)
		}
		names, _, _ = strings.Cut(names, "+")
		for word := range strings.SplitSeq(names, ",") {
			id := number.FindString(word)
			if id != "" && !slices.ContainsFunc(gpu.Tasks, func(r api.Resident) bool { return fmt.Sprint(r.Task) == id }) {
				t.Errorf("GPU %d has no task %s: %q", gpu.Index, id, line)
			}
		}
	}
}

// crowd returns a server with many GPUs and tasks, four of which run on each GPU.
func crowd(gpus, tasks int) *fake {
	f := lab()
	model, waits := f.tasks[len(f.tasks)-1], f.tasks[2]
	f.tasks, f.gpus = nil, nil
	for i := range gpus {
		f.gpus = append(f.gpus, api.GPU{GPURef: on(i)[0], Model: "NVIDIA H100 80GB HBM3", Capacity: gib(79.6), SMACT: 0.87, PowerW: float64(601 + i), Sharing: "mps"})
	}
	for i := range tasks {
		task := model
		task.ID = int64(10_000 + i)
		task.Name = fmt.Sprintf("sweep-of-learning-rates-%d", i)
		if i >= 4*gpus {
			task.Phase, task.Attempts, task.Progress = "queued", nil, nil
			task.Position, task.Waits = i-4*gpus+1, waits.Waits
			f.tasks = append(f.tasks, task)
			continue
		}
		g := &f.gpus[i%gpus]
		task.Attempts = []api.Attempt{{N: 1, GPUs: on(g.Index), Grant: gib(18.75), Started: task.Started}}
		r := api.Resident{Task: task.ID, Name: task.Name, Grant: gib(18.75), Used: gib(12.5 + float64(i%5)), Peak: gib(17.1)}
		g.Reserved, g.Used, g.Tasks = g.Reserved+r.Grant, g.Used+r.Used, append(g.Tasks, r)
		f.tasks = append(f.tasks, task)
	}
	f.info.Running, f.info.Queued = 4*gpus, tasks-4*gpus
	return f
}
