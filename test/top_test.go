//go:build e2e

package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/cmd/carma/cli"
)

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
	p.mouse(t, "vgg  ")
	row("vgg")
	p.mouse(t, "USER")
	p.shows("by user (o, O)")
	p.mouse(t, "USER")
	p.shows("by user, the other way round (o, O)")
	p.run("send-keys", "-l", "\x1b[<64;5;12M\x1b[<64;5;12M") // the wheel, up
	if on := p.run("display-message", "-p", "#{mouse_button_flag}"); strings.TrimSpace(on) != "1" {
		t.Errorf("the terminal was not asked for the mouse: %q", on)
	}
	p.press("M")
	p.shows("the mouse is the terminal's again")
	for until := time.Now().Add(drawn); strings.TrimSpace(p.run("display-message", "-p", "#{mouse_button_flag}")) != "0"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("after M the terminal still sends clicks")
		}
	}
	p.press("M", "O", "o", "o", "o", "o", "o", "Home")
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

// mouse clicks on the first place of a text.
func (p *pane) mouse(t *testing.T, text string) {
	t.Helper()
	for y, line := range strings.Split(p.shows(text), "\n") {
		if before, _, there := strings.Cut(line, text); there {
			p.run("send-keys", "-l", fmt.Sprintf("\x1b[<0;%d;%dM\x1b[<0;%d;%dm", cli.Cells(before)+1, y+1, cli.Cells(before)+1, y+1))
			return
		}
	}
}

// TestTopOfOthers: a second user sees the tasks, and an answer that they may not stop
// them or read their output.
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

// TestTopElsewhere: without a suitable terminal, the view prints an alternative, and tables are
// repainted in place.
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
