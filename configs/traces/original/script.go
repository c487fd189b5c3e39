package original

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"carma/configs/traces/joblog"
)

// Script is a script that submits and sleeps.
type Script struct {
	Notes   Notes // of the whole script
	Submits []Submit
}

// Submit is one submission.
type Submit struct {
	At    time.Duration // since the start of the script
	Rad   string        // the path in the script
	Notes Notes
	Line  int
}

// maxSubmits is the largest number of submissions in a script, the same as in a trace.
const maxSubmits = 100_000

// ParseScript reads a script. Errors begin with name and the line.
func ParseScript(name string, r io.Reader) (Script, error) {
	p := scriptParser{name: name, script: Script{Notes: Notes{}}}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		p.line++
		if err := p.take(s.Text()); err != nil {
			return Script{}, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
	}
	if err := s.Err(); err != nil {
		return Script{}, fmt.Errorf("%s:%d: %w", name, p.line+1, err)
	}
	if len(p.script.Submits) == 0 {
		return Script{}, fmt.Errorf("%s:%d: no submission; write for example python src/submit.py --task workloads/vgg.rad", name, max(1, p.line))
	}
	return p.script, nil
}

type scriptParser struct {
	name   string
	line   int
	at     time.Duration
	script Script
}

// take parses one line.
func (p *scriptParser) take(line string) error {
	commands, comment, err := split(line)
	if err != nil {
		return err
	}
	notes, err := parseNotes(comment)
	if err != nil {
		return err
	}
	before := len(p.script.Submits)
	for _, words := range commands {
		if err := p.command(words); err != nil {
			return err
		}
	}
	switch n := len(p.script.Submits) - before; {
	case len(notes) == 0:
	case len(commands) == 0:
		for k, v := range notes {
			p.script.Notes[k] = v
		}
	case n != 1:
		return fmt.Errorf("a carma: comment stands behind one submission, not %d", n)
	default:
		p.script.Submits[before].Notes = notes
	}
	return nil
}

func (p *scriptParser) command(words []string) error {
	switch {
	case words[0] == "sleep":
		return p.sleep(words[1:])
	case slices.ContainsFunc(words[:min(2, len(words))], isSubmit):
		return p.submit(words)
	}
	return fmt.Errorf("%.40q is neither sleep nor submit.py; only these are read", words[0])
}

func isSubmit(word string) bool { return word == "submit.py" || strings.HasSuffix(word, "/submit.py") }

// sleepUnits are the units of sleep.
var sleepUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

func (p *scriptParser) sleep(times []string) error {
	if len(times) == 0 {
		return fmt.Errorf("sleep needs a time; write for example sleep 73")
	}
	for _, s := range times {
		number, unit := s, time.Second
		if s != "" {
			if u, ok := sleepUnits[s[len(s)-1]]; ok {
				number, unit = s[:len(s)-1], u
			}
		}
		d, err := joblog.ParseSeconds(number)
		if err != nil || d > joblog.MaxTime/(unit/time.Second) {
			return fmt.Errorf("sleep: %.40q is not a time from 0 to ten years; write for example sleep 73", s)
		}
		if p.at += d * (unit / time.Second); p.at > joblog.MaxTime {
			return fmt.Errorf("sleep: more than ten years after the start")
		}
	}
	return nil
}

// defaultTask is the file that submit.py uses by default.
const defaultTask = "task.txt"

func (p *scriptParser) submit(words []string) error {
	if !isSubmit(words[0]) {
		if !strings.HasPrefix(words[0][strings.LastIndexByte(words[0], '/')+1:], "python") {
			return fmt.Errorf("%.40q before submit.py is not python", words[0])
		}
		words = words[1:]
	}
	task, words := defaultTask, words[1:]
	for len(words) > 0 {
		value, joined := strings.CutPrefix(words[0], "--task=")
		switch {
		case joined:
			task, words = value, words[1:]
		case words[0] == "--task" && len(words) > 1:
			task, words = words[1], words[2:]
		case words[0] == "--task":
			return fmt.Errorf("--task needs a path; write for example --task workloads/vgg.rad")
		default:
			return fmt.Errorf("submit.py: unknown argument %.40q; it takes --task PATH", words[0])
		}
	}
	if task == "" || strings.HasPrefix(task, "-") {
		return fmt.Errorf("--task: %.40q is not a path; write for example --task workloads/vgg.rad", task)
	}
	if len(p.script.Submits) == maxSubmits {
		return fmt.Errorf("more than %d submissions", maxSubmits)
	}
	p.script.Submits = append(p.script.Submits, Submit{At: p.at, Rad: task, Line: p.line})
	return nil
}

// Write writes a script like the original's newer ones, with a sleep before every
// submission.
func (s Script) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("#!/bin/sh\n")
	for _, key := range []string{"name", "campaign", "description", "source"} {
		if v, ok := s.Notes[key]; ok {
			fmt.Fprintf(b, "%s\n", Notes{key: v})
		}
	}
	at := time.Duration(0)
	for _, one := range s.Submits {
		fmt.Fprintf(b, "sleep %s\npython src/submit.py --task %s", joblog.FormatSeconds(one.At-at), quote(one.Rad))
		if len(one.Notes) > 0 {
			fmt.Fprintf(b, " %s", one.Notes)
		}
		b.WriteString("\n")
		at = one.At
	}
	return b.Flush()
}
