package traces

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/configs/workloads"
	"carma/internal/suggest"
	"carma/internal/units"
)

// field is one property of a task, in both forms.
type field struct {
	name string
	set  func(p *parser, t *Task, value string) (complaint string)
}

// fields are the fields of a task. In CSV the first is called arrival_s.
var fields = []field{
	{"at", setAt},
	{"workload", setWorkload},
	{"gpus", setGPUs},
	{"name", func(_ *parser, t *Task, s string) string { t.Name = s; return "" }},
	{"user", func(_ *parser, t *Task, s string) string { t.User = s; return "" }},
	{"priority", setPriority},
	{"mem", setMem},
}

func fieldNames() []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

// set sets one property of a task. value is the text in the file.
func (p *parser) set(t *Task, line int, name, value string) error {
	for _, f := range fields {
		if f.name == name {
			if complaint := f.set(p, t, strings.TrimSpace(value)); complaint != "" {
				return p.errorf(line, "%s", complaint)
			}
			return nil
		}
	}
	return p.errorf(line, "unknown key %q of a task; nearest: %s", name, suggest.Names(name, fieldNames(), 1)[0])
}

// add adds a task whose properties are set.
func (p *parser) add(t Task, set map[string]bool) error {
	switch {
	case !set["at"]:
		return p.errorf(t.Line, "task without arrival; write for example at: 0")
	case !set["workload"]:
		return p.errorf(t.Line, "task without workload; write for example workload: mnist_train")
	case len(p.trace.Tasks) == maxTasks:
		return p.errorf(t.Line, "more than %d tasks", maxTasks)
	}
	p.trace.Tasks = append(p.trace.Tasks, t)
	return nil
}

func setAt(_ *parser, t *Task, s string) string {
	at, err := units.ParseTime(s)
	if seconds, e := strconv.ParseFloat(s, 64); e == nil && !math.IsNaN(seconds) {
		bounded := max(-1, min(seconds, maxAt.Seconds()+1))
		at, err = time.Duration(bounded*float64(time.Second)).Round(time.Microsecond), nil
	}
	switch {
	case err != nil && !strings.HasPrefix(s, "-"):
		return "arrival " + strconv.Quote(s) + " is not a time; write seconds or for example 1h2m3s"
	case err != nil || at < 0:
		return "arrival " + s + " is negative; nearest: 0"
	case at > maxAt:
		return "arrival " + s + " is more than ten years; nearest: 87600h"
	}
	t.At = at
	return ""
}

func setWorkload(_ *parser, t *Task, s string) string {
	w, err := workloads.Find(s)
	if err != nil {
		return err.Error()
	}
	t.Workload = w.Name
	if t.GPUs == 0 {
		t.GPUs = w.GPUs
	}
	return ""
}

func setGPUs(_ *parser, t *Task, s string) string {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return "gpus " + strconv.Quote(s) + " is not a whole number; write for example 1"
	case n < 1:
		return "gpus is " + s + "; nearest: 1"
	case n > maxGPUs:
		return "gpus is " + s + "; nearest: " + strconv.Itoa(maxGPUs)
	}
	t.GPUs = n
	return ""
}

func setPriority(_ *parser, t *Task, s string) string {
	word := strings.ToLower(s)
	if !slices.Contains(Priorities, word) {
		return "unknown priority " + strconv.Quote(s) + "; nearest: " + suggest.Names(s, Priorities, 1)[0]
	}
	if t.Priority = word; word == normal {
		t.Priority = ""
	}
	return ""
}

func setMem(_ *parser, t *Task, s string) string {
	m, err := units.ParseBytes(s)
	switch {
	case err != nil:
		return "mem: " + err.Error()
	case m > 0 && m < units.MiB:
		return "mem " + s + " is less than 1 MiB; a unit may be missing: write for example 512M or 12G"
	}
	t.Mem = m
	return ""
}
