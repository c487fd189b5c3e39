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

// drawn is the longest time that a screen may take to show something, on a busy machine.
const drawn = 90 * time.Second

// pane is a terminal of tmux in which a command runs.
type pane struct {
	t     *testing.T
	tmux  string // the socket of its tmux server
	width int
}

// needTmux skips a test if tmux is missing, except in CI.
func needTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no tmux; .ci/run installs it")
		}
		t.Skip("no tmux: apt-get install tmux")
	}
}

// pane opens a terminal of a size and runs a line of sh in it, then prints its exit code.
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

// text returns the text on the terminal. No line of it may be wider than the terminal.
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
			if !strings.Contains(text, w) && !strings.Contains(strings.ReplaceAll(text, "\n", ""), w) { // a long line continues in the next
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
