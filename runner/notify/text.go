package notify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"carma/internal/lazyregexp"
	"carma/runner/api"
)

// verbs maps events about a task to words.
var verbs = map[string]string{
	api.NotifyStarted: "started", api.NotifyFinished: "finished", api.NotifyFailed: "failed", api.NotifyStopped: "was stopped",
	api.NotifyRecovered: "goes back to the queue", api.NotifyIdle: "does nothing", api.NotifyDevice: "cannot open its GPUs any more", api.NotifySuspended: "is suspended", api.NotifyResumed: "goes on",
	api.NotifyFault: "GPU fault", eventTest: "test message",
}

// eventTest is the event of a test message.
const eventTest = "test"

// write makes a letter of at least one message. dropped is the number of messages given
// up before.
func write(server string, messages []Message, output bool, dropped int) *letter {
	l := &letter{ID: messages[0].ID, Server: server, Messages: slices.Clone(messages)}
	if n := len(messages); n > 1 {
		l.ID = fmt.Sprintf("%s+%d", messages[0].ID, n-1)
	}
	if len(l.Messages) > inFull {
		l.LeftOut, l.Messages = len(l.Messages)-inFull, l.Messages[:inFull]
	}
	for i := range l.Messages {
		if m := &l.Messages[i]; !output || len(messages) > withOutput {
			m.Output = nil
		}
	}
	l.Title = "[" + oneLine(server) + "] " + title(messages)
	var lines []string
	for i := range l.Messages {
		lines = append(lines, l.Messages[i].line())
	}
	if l.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: %s", l.LeftOut, numbers(messages[inFull:])))
	}
	if dropped > 0 {
		lines = append(lines, fmt.Sprintf("%d earlier messages could not be sent and are lost", dropped))
	}
	l.short = strings.Join(lines, "\n")
	l.Text = l.short
	for i := range l.Messages {
		if m := &l.Messages[i]; len(m.Output) > 0 {
			l.Text += fmt.Sprintf("\n\nlast lines of task %d:\n%s", m.Task, strings.Join(m.Output, "\n"))
		}
	}
	return l
}

// title returns the first line of a letter, for one message, or for several by their
// events.
func title(messages []Message) string {
	if len(messages) == 1 {
		m := &messages[0]
		if m.Event == eventTest {
			return verbs[eventTest]
		}
		if m.Task == 0 {
			return oneLine(verbs[m.Event] + ": " + m.Name)
		}
		return oneLine(fmt.Sprintf("task %d (%s) %s", m.Task, m.Name, verbs[m.Event]))
	}
	counts := map[string]int{}
	var order []string
	for i := range messages {
		if e := messages[i].Event; counts[e] == 0 {
			order = append(order, e)
		}
		counts[messages[i].Event]++
	}
	var parts []string
	for _, e := range order {
		parts = append(parts, fmt.Sprintf("%d %s", counts[e], e))
	}
	return fmt.Sprintf("%d messages: %s", len(messages), strings.Join(parts, ", "))
}

func (m *Message) line() string {
	if m.Task == 0 {
		return oneLine(strings.TrimSuffix(m.Name+": "+m.Reason, ": "))
	}
	text := fmt.Sprintf("task %d (%s, %s) %s", m.Task, m.Name, m.User, verbs[m.Event])
	if m.ExitCode != nil && m.Event == api.NotifyFailed {
		text += fmt.Sprintf(" with exit code %d", *m.ExitCode)
	}
	if m.Seconds >= 1 {
		text += " after " + (time.Duration(m.Seconds) * time.Second).String()
	}
	if m.Reason != "" && (m.ExitCode == nil || m.Reason != fmt.Sprintf("exit code %d", *m.ExitCode)) {
		text += ": " + m.Reason
	}
	return oneLine(text)
}

// numbers lists the task numbers of messages, with ranges as 3-7.
func numbers(messages []Message) string {
	var ids []int64
	for i := range messages {
		ids = append(ids, messages[i].Task)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		text := strconv.FormatInt(ids[i], 10)
		if j > i {
			text += "-" + strconv.FormatInt(ids[j], 10)
		}
		if parts = append(parts, text); len(parts) == 50 && j+1 < len(ids) {
			parts = append(parts, "...")
			break
		}
		i = j + 1
	}
	return "tasks " + strings.Join(parts, ", ")
}

// oneLine returns text without line breaks and control characters, cut to 500 characters.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Bidi_Control, r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if r := []rune(text); len(r) > 500 {
		text = string(r[:500]) + "..."
	}
	return text
}

// Lines returns the last lines of an output in the form for messages: at most 10, without
// control characters and without text that a progress bar has overwritten.
func Lines(raw [][]byte) (lines []string) {
	for _, b := range raw {
		text := strings.TrimRight(string(b), "\r\n")
		text = text[strings.LastIndex(text, "\r")+1:]
		if text = strings.TrimRight(oneLine(escapes().ReplaceAllString(text, "")), " "); text != "" {
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-10):]
}

// escapes matches escape sequences of terminals.
var escapes = lazyregexp.New(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])`)
