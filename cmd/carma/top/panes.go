package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/server"
	"carma/cmd/carma/tasks"
	"carma/internal/units"
	"carma/runner/api"
)

func secs(n int64) time.Duration { return time.Duration(n) * time.Second }

// pane is a screen of text: a task's details, reasons or output, the GPUs, or help.
type pane struct {
	task  api.Task
	why   *api.Why
	err   error
	asked time.Time // time of the last request

	first int // first line shown
	side  int // number of cells scrolled to the right
	// Output.
	serial int
	end    func() // ends the stream
	next   chan logged
	log    []string
	piece  string // beginning of an unfinished line
	tail   bool   // the pane follows the output
	over   string
}

// keptLines is the largest number of stored lines of output.
const keptLines = 5000

// body returns the title and the text of the pane.
func (p *pane) body(m *app) (head string, lines []string) {
	switch m.screen {
	case allGPUs:
		return "GPUs", m.gpuBody()
	case helping:
		return "Keys", strings.Split(helpText, "\n")
	case output:
		return p.heading("output of"), p.logBody()
	case reasons:
		head = p.heading("why")
	default:
		head = p.heading("details of")
	}
	switch {
	case p.err != nil:
		return head, wrapped(cli.Describe(p.err), m.width-2)
	case p.why == nil:
		return head, []string{"asking the daemon ..."}
	}
	text := tasks.WhyText(p.why, &p.task)
	if m.screen == details {
		text += p.more(m)
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, wrapped(line, m.width-2)...)
	}
	return head, lines
}

func (p *pane) heading(what string) string {
	return fmt.Sprintf("%s task %d (%s) of %s", what, p.task.ID, cli.Printable(p.task.Name), cli.Printable(p.task.User))
}

// view returns the pane in a number of lines.
func (p *pane) view(m *app, height int) []string {
	head, body := p.body(m)
	room := max(1, height-1)
	last := max(0, len(body)-room)
	if p.first = max(0, min(p.first, last)); p.tail {
		p.first = last
	}
	shown := body[p.first:min(len(body), p.first+room)]
	at := ""
	if len(body) > room {
		at = fmt.Sprintf("  lines %d-%d of %d", p.first+1, p.first+len(shown), len(body))
	}
	lines := []string{title.of(m.glyphs.fit(" "+m.glyphs.cut(head, m.width-cli.Cells(at)-1)+at, m.width))}
	for _, l := range shown {
		if m.screen == allGPUs {
			lines = append(lines, l)
			continue
		}
		if m.screen == output && p.side > 0 {
			l = ansi.TruncateLeftWc(l, p.side, "")
		}
		lines = append(lines, m.glyphs.fit(" "+l, m.width))
	}
	return lines
}

// more returns details in addition to the reasons: the request, and the estimate against
// the use.
func (p *pane) more(m *app) string {
	t := &p.task
	var b strings.Builder
	last := cli.LastAttempt(t)
	used, peak, grant := m.in[t.ID].used, m.in[t.ID].peak, m.in[t.ID].grant
	if last != nil {
		peak, grant = max(peak, last.Peak), max(grant, last.Grant)
	}
	if !t.Submit.NoGPU {
		b.WriteString("\n")
		guess := t.Estimate.Point
		if guess == 0 {
			guess = t.Estimate.Memory
		}
		fmt.Fprintf(&b, "memory per GPU: estimated %s, reserved %s, used %s, peak %s\n", amount(guess), amount(grant), amount(used), amount(peak))
		whole := max(guess, grant, peak, used)
		width := min(m.width-36, 100)
		if used > 0 {
			fmt.Fprintf(&b, "  now     %s  | is the estimate\n", m.glyphs.meter(used, guess, whole, width))
		}
		if last != nil && len(last.Curve) > 0 {
			end := p.why.Now
			if !last.Ended.IsZero() {
				end = last.Ended
			}
			curve := strings.TrimRight(m.glyphs.curve(last.Curve, end.Unix(), whole, width), " ")
			fmt.Fprintf(&b, "  so far  %s  its top is %s\n", strings.TrimLeft(curve, " "), amount(whole))
		}
	}
	fmt.Fprintf(&b, "\nimage: %s\n", cli.Printable(t.Image))
	if words := append(append([]string{}, t.Submit.Entrypoint...), t.Submit.Command...); len(words) > 0 {
		fmt.Fprintf(&b, "command: %s\n", cli.Printable(strings.Join(words, " ")))
	}
	if t.Group != "" {
		fmt.Fprintf(&b, "group: %s\n", cli.Printable(t.Group))
	}
	fmt.Fprintf(&b, "submitted: %s by %s\n", t.Submitted.Local().Format("2006-01-02 15:04:05"), cli.Printable(t.User))
	if t.EnergyJ > 0 {
		fmt.Fprintf(&b, "energy: %s\n", units.Joules(t.EnergyJ))
	}
	for _, port := range t.Ports {
		fmt.Fprintf(&b, "port: %s at %s\n", port.Port, port.Address)
	}
	return b.String()
}

func amount(bytes int64) string {
	if bytes == 0 {
		return "not known"
	}
	return units.Bytes(bytes).String()
}

// gpuBody returns a text about each GPU and everything that runs on it.
func (m *app) gpuBody() (lines []string) {
	head, rows := m.gpuRows(m.gpus, false)
	lines = append(lines, title.of(head))
	for i := range m.gpus {
		g := &m.gpus[i]
		lines = append(lines, rows[i])
		about := fmt.Sprintf("     %s", strings.TrimPrefix(g.Model, "NVIDIA "))
		if g.TemperatureC > 0 {
			about += fmt.Sprintf(", %.0f C", g.TemperatureC)
		}
		if g.Sharing != "" {
			about += ", shared by " + g.Sharing
		}
		lines = append(lines, dim.of(m.glyphs.fit(cli.Printable(about), m.width)))
		for _, r := range g.Tasks {
			text := fmt.Sprintf("     task %d %s: reserved %s, used %s, peak %s", r.Task, r.Name, units.Bytes(r.Grant), units.Bytes(r.Used), units.Bytes(r.Peak))
			if t := m.tasks[r.Task]; t != nil {
				text = fmt.Sprintf("     task %d %s of %s: estimated %s, reserved %s, used %s, peak %s  %s %s", r.Task, r.Name, t.User,
					amount(max(t.Estimate.Point, 0)), units.Bytes(r.Grant), units.Bytes(r.Used), units.Bytes(r.Peak), tasks.Far(t, m.time()), tasks.Slowed(t))
			}
			lines = append(lines, m.lined(text)...)
		}
		rest := *g
		rest.Tasks = nil
		for _, part := range server.Residents(rest, 1000) {
			for _, l := range m.lined("     " + part) {
				lines = append(lines, bad.of(l))
			}
		}
	}
	if h := server.HostLine(m.info.Host); h != "" {
		lines = append(lines, m.lined("host: "+h)...)
	}
	return lines
}

// lined wraps a text to the width of the screen.
func (m *app) lined(text string) (lines []string) {
	for _, l := range wrapped(strings.TrimRight(cli.Printable(text), " "), m.width) {
		lines = append(lines, m.glyphs.fit(l, m.width))
	}
	return lines
}

func (p *pane) logBody() []string {
	lines := p.log
	if p.err != nil {
		lines = append(lines[:len(lines):len(lines)], "carma: "+cli.Describe(p.err))
	}
	if p.over != "" {
		lines = append(lines[:len(lines):len(lines)], "carma: "+p.over)
	}
	if len(lines) == 0 {
		return []string{"no output yet"}
	}
	return lines
}

// told stores the answer about the pane's task.
func (p *pane) told(m *app, a *told) {
	if m.screen != details && m.screen != reasons || a.id != p.task.ID {
		return
	}
	if p.err = a.err; a.err == nil {
		p.task, p.why = a.task, &a.why
	}
}

// logged adds lines of output, and waits for more.
func (p *pane) logged(m *app, l *logged) tea.Cmd {
	if l.serial != p.serial || m.screen != output {
		return nil
	}
	for i := range l.lines {
		p.add(&l.lines[i])
	}
	if more := len(p.log) - keptLines; more > 0 {
		p.log = append([]string(nil), p.log[more:]...)
		p.first = max(0, p.first-more)
	}
	if l.done {
		p.err, p.over = l.err, l.over
		return nil
	}
	return p.wait()
}

// longestLine is the largest size of a line that does not end, in bytes.
const longestLine = 16 << 10

// add adds a line of output, or the next piece of a line.
func (p *pane) add(l *api.LogLine) {
	if p.piece != "" && len(p.log) > 0 {
		p.log = p.log[:len(p.log)-1]
	}
	text := p.piece + l.Line
	if p.piece = ""; l.Partial {
		p.piece = text[max(0, len(text)-longestLine):]
	}
	p.log = append(p.log, logLine(text, l.Stream))
}

// logLine returns a line of output without characters that would move the cursor. If a
// progress bar overwrites itself, only its last text remains.
func logLine(text, stream string) string {
	text = strings.TrimRight(text, "\r\n")
	if at := strings.LastIndexByte(text, '\r'); at >= 0 {
		text = text[at+1:]
	}
	text = cli.Printable(ansi.Strip(strings.ReplaceAll(text, "\t", "    ")))
	if stream == "carma" {
		text = "carma: " + text
	}
	return text
}
