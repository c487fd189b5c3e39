//go:build e2e

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/cmd/carma/cli"
)

// drawn is how long a screen may take to show something, on a busy machine.
const drawn = 90 * time.Second

// pane is a terminal of tmux in which a command runs.
type pane struct {
	t     *testing.T
	tmux  string // the socket of its tmux server
	width int
}

// needTmux leaves a test out where there is no tmux, except in CI.
func needTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no tmux; .ci/run installs it")
		}
		t.Skip("no tmux: apt-get install tmux")
	}
}

// pane opens a terminal of a size and runs a line of sh in it, then tells its exit code.
func (s *server) pane(cols, rows int, line string) *pane {
	s.t.Helper()
	p := &pane{t: s.t, tmux: filepath.Join(s.root, fmt.Sprintf("t%d", time.Now().UnixNano())), width: cols}
	script := p.tmux + ".sh"
	text := fmt.Sprintf("trap : INT\nexport CARMA_CONFIG=/dev/null CARMA_SOCKET=%s TZ=UTC LC_ALL=C.UTF-8\nPATH=%s:$PATH\n%s\necho ended with code $?\nsleep 1000\n", s.socket, filepath.Dir(s.cli), line)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
	p.run("-u", "-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), "sh "+script)
	s.t.Cleanup(func() { _ = exec.Command("tmux", "-S", p.tmux, "kill-server").Run() })
	return p
}

func (p *pane) run(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.tmux}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// text is what the terminal shows. No line of it may be wider than the terminal.
func (p *pane) text() string {
	p.t.Helper()
	text := p.run("capture-pane", "-p")
	for line := range strings.SplitSeq(text, "\n") {
		if cli.Cells(line) > p.width {
			p.t.Errorf("a line of %d cells in a terminal of %d: %q", cli.Cells(line), p.width, line)
		}
	}
	return text
}

// press types keys, with tmux's names.
func (p *pane) press(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		p.run("send-keys", k)
	}
}

// shows waits until the terminal shows all the words.
func (p *pane) shows(words ...string) string {
	p.t.Helper()
	return p.until(fmt.Sprintf("%q", words), func(text string) bool {
		for _, w := range words {
			if !strings.Contains(text, w) && !strings.Contains(strings.ReplaceAll(text, "\n", ""), w) { // a long line goes on in the next
				return false
			}
		}
		return true
	})
}

// until waits for a screen.
func (p *pane) until(what string, fits func(text string) bool) string {
	p.t.Helper()
	for until := time.Now().Add(drawn); ; time.Sleep(50 * time.Millisecond) {
		text := p.text()
		if fits(text) {
			return text
		}
		if time.Now().After(until) {
			p.t.Fatalf("waited for %s; the terminal shows\n%s", what, text)
		}
	}
}

func (p *pane) resize(cols, rows int) {
	p.t.Helper()
	p.run("resize-window", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows))
	p.width = cols
}

// rowOf reports whether a row begins with some cells.
func rowOf(text string, cells ...string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if got := strings.Fields(strings.TrimPrefix(line, ">")); len(got) >= len(cells) && slices.Equal(got[:len(cells)], cells) {
			return true
		}
	}
	return false
}

// phaseOf waits until a task is in a phase.
func (s *server) phaseOf(ref, want string) {
	s.t.Helper()
	for until := time.Now().Add(patience); s.inspect(ref).Phase != want; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("task %s is %s, not %s", ref, s.inspect(ref).Phase, want)
		}
	}
}

// TestTop goes through every screen and key of the live view in a terminal, against a
// daemon with simulated GPUs.
func TestTop(t *testing.T) {
	t.Parallel()
	needTmux(t)
	s := newServer(t, "--speed", "10")
	s.start()
	runs := s.submit("--name", "mask", "--est-model", "maskrcnn-coco-bs8", image, "maskrcnn-coco-bs8")
	other := s.submit("--name", "vgg", "--est-model", "vgg16-imagenet-bs128", image, "vgg16-imagenet-bs128")
	s.phaseOf(runs, "running")
	s.phaseOf(other, "running")
	wide := s.submit("--name", "wide", "--gpus", "4", "--exclusive", image, "vgg16-imagenet-bs128")
	last := s.submit("--name", "last", "--gpus", "4", "--exclusive", image, "vgg16-imagenet-bs128")

	p := s.pane(80, 24, "carma top")
	p.shows("RESERVED", "RUNNING 2", "WAITING 2", ">", runs+" mask", other+" vgg", wide+" wide", "? help")
	row := func(name string) { // with the cursor
		t.Helper()
		p.until("the cursor at "+name, func(text string) bool {
			for line := range strings.SplitSeq(text, "\n") {
				if strings.HasPrefix(line, ">") && strings.Contains(line, " "+name+" ") {
					return true
				}
			}
			return false
		})
	}
	row("mask")

	for _, screen := range []struct {
		key   string
		words []string
	}{
		{"Enter", []string{"details of task " + runs, "is running on GPU", "memory per GPU: estimated 27.9 GiB, reserved", "image: " + image}},
		{"w", []string{"why task " + runs + " (mask)", "it does not wait: attempt 1"}},
		{"l", []string{"output of task " + runs, "batch size 8", "loss"}},
		{"g", []string{"GPUs", "A100-SXM4-40GB, shared by mps", "task " + runs + " mask of"}},
		{"?", []string{"Keys", "quit; tasks run on"}},
	} {
		p.press(screen.key)
		p.shows(append(screen.words, "esc back")...)
		p.press("Escape")
		time.Sleep(100 * time.Millisecond) // else esc and the next key are one key with alt
		if screen.key == "?" || screen.key == "g" {
			continue
		}
		p.shows("RUNNING 2")
	}

	p.press("End")
	row("last")
	p.press("t")
	p.shows("task " + last + " (last) goes before the others of its owner")
	p.until("last before wide", func(text string) bool { return rowOf(text, "1", last, "last") })
	p.press("b")
	p.shows("goes behind the others")
	p.press("h")
	p.shows("task " + last + " (last) is held")
	s.phaseOf(last, "held")
	p.press("r")
	p.shows("is released")
	s.phaseOf(last, "queued")

	p.press("/", "v", "g", "g", "Enter")
	p.shows("only vgg (/)", "RUNNING 1 of 2", "none that fits")
	row("vgg")
	p.press("z")
	s.phaseOf(other, "suspended")
	p.shows("suspended")
	p.press("u")
	p.shows("comes back when there is room")
	s.phaseOf(other, "running")
	p.press("x")
	p.shows("Stop task " + other + " (vgg) of")
	p.press("n")
	p.shows("nothing is stopped")
	p.press("x")
	p.shows("y: yes")
	p.press("y")
	p.shows("is told to stop")
	s.phaseOf(other, "cancelled")
	p.press("Escape")
	time.Sleep(100 * time.Millisecond)
	p.press("m")
	p.shows("only your tasks (m)")
	p.press("m", "o", "O")
	p.shows("by newest, the other way round (o, O)")
	p.press("/")
	p.run("send-keys", "status=runing")
	p.press("Enter")
	p.shows(`"runing" is not one of`)

	for _, size := range [][2]int{{300, 80}, {120, 40}, {81, 25}} {
		p.resize(size[0], size[1])
		p.until("the width", func(text string) bool {
			lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
			return len(lines) == size[1] && cli.Cells(lines[0]) > size[0]-3 && strings.Contains(text, "RUNNING 1")
		})
	}
	p.resize(60, 12)
	p.shows("The lists need 80x24; this window has 60x12. q quits", "GPU 0: ")
	p.resize(80, 24)
	p.shows("RUNNING 1")

	s.kill()
	p.shows("! no daemon answers since ", "what is shown is old", "mask")
	s.start()
	p.until("the daemon to be back", func(text string) bool { return !strings.Contains(text, "no daemon answers") })
	p.press("q")
	text := p.shows("ended with code 0")
	if strings.Contains(text, "RUNNING") {
		t.Errorf("the view is left on the screen:\n%s", text)
	}
}

// TestTopOfOthers: a second user sees the tasks, and is told that they may not be
// stopped, or their output read.
func TestTopOfOthers(t *testing.T) {
	t.Parallel()
	needTmux(t)
	needRoot(t)
	s := newServer(t, "--speed", "10")
	s.borrowCommand()
	s.start()
	task := s.submit("--name", "rooted", "--mem", "4G", image, "vgg16-imagenet-bs128")
	s.phaseOf(task, "running")
	p := s.pane(100, 30, "HOME=/nonexistent setpriv --reuid 65534 --regid 65534 --clear-groups carma top")
	p.shows("RUNNING 1", task+" rooted")
	p.press("x", "y")
	p.shows("belongs to")
	p.press("l")
	p.shows("output of task "+task, "carma: ")
	p.press("Escape")
	time.Sleep(100 * time.Millisecond)
	p.press("m")
	p.shows("RUNNING 0 of 1", "none that fits; esc shows all")
	if got := s.inspect(task).Phase; got != "running" {
		t.Errorf("the task is %s", got)
	}
	p.press("C-c")
	p.shows("ended with code 0")
}

// TestTopElsewhere: where there is no terminal for it, the view says what to use; tables
// are repainted in place.
func TestTopElsewhere(t *testing.T) {
	t.Parallel()
	needTmux(t)
	s := newServer(t, "--speed", "10")
	s.start()
	for line, want := range map[string][]string{
		"TERM=dumb carma top":           {"TERM is", "carma ps and carma gpus", "ended with code 2"},
		"carma top </dev/null":          {"needs a terminal", "ended with code 2"},
		"carma top --interval 1ms":      {"--interval 1ms is less than 200ms", "ended with code 2"},
		"CARMA_SOCKET=/no/s carma top":  {"no carma daemon at /no/s", "ended with code 2"},
		"LC_ALL=C NO_COLOR=1 carma top": {"GPU # used = reserved", "RUNNING 0", "nothing waits"},
	} {
		s.pane(100, 30, line).shows(want...)
	}
	p := s.pane(90, 12, "carma gpus --watch=300ms")
	p.shows("GPU  MODEL", "A100")
	task := s.submit("--name", "seen", "--mem", "4G", image, "vgg16-imagenet-bs128")
	text := p.shows(task + " seen")
	if strings.Count(text, "MODEL") != 1 {
		t.Errorf("not in place:\n%s", text)
	}
	p.press("C-c")
	p.shows("ended with code 0")
	p = s.pane(90, 12, "carma ps --watch=300ms --mine")
	p.shows("seen", "running")
	s.kill()
	p.shows("The daemon does not answer")
	s.start()
	p.until("the daemon to be back", func(text string) bool { return !strings.Contains(text, "does not answer") })
	p.press("C-c")
	p.shows("ended with code 0")
}
