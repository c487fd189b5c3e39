package taskfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/internal/suggest"
	"carma/runner/api"
)

// complete checks the rules between the keys of a task.
func (p *parser) complete(f *File, t *Task) error {
	key := ""
	if len(f.Tasks) > 1 || t.Submit.Name != "" {
		key = "tasks." + t.Submit.Name
	}
	for _, v := range t.env {
		t.Submit.Env = append(t.Submit.Env, v.key+"="+v.value)
	}
	for _, v := range t.labels {
		if t.Submit.Labels == nil {
			t.Submit.Labels = map[string]string{}
		}
		t.Submit.Labels[v.key] = v.value
	}
	if e := t.Check(); e != nil {
		return p.errorf(t.Line, join(key, e.Field), "%s", e.Text)
	}
	if n := t.Count(); n > MaxTasks {
		return p.errorf(t.Line, join(key, "sweep"), "it comes to more than %d tasks, the most of one submission", MaxTasks)
	}
	return nil
}

// Check checks the rules between the fields of a task. It works before a sweep has set
// the batch size. It returns nil if no rule is broken.
func (t *Task) Check() *api.FieldError {
	switch parallel := t.Submit.Parallel; {
	case parallel > 0 && t.Array.Parallel > 0 && parallel != t.Array.Parallel:
		return &api.FieldError{Field: "parallel", Text: fmt.Sprintf("%d, and the array says %%%d; leave one of them out", parallel, t.Array.Parallel)}
	case parallel > 0 && len(t.Array.Indices) == 0 && len(t.Sweep) == 0:
		return &api.FieldError{Field: "parallel", Text: "without an array or a sweep there is one task"}
	}
	s := t.Submit
	for _, axis := range t.Sweep {
		if axis.IsBatch() && s.BatchSize > 0 {
			return &api.FieldError{Field: "sweep", Text: fmt.Sprintf("the batch size is given and swept as %s; leave one of them out", axis.Key)}
		}
		if axis.IsBatch() {
			s.BatchSize = 1
		}
	}
	return s.Check()
}

// Count returns the number of tasks of an entry, at most MaxTasks+1.
func (t *Task) Count() int {
	n := max(1, len(t.Array.Indices))
	for _, axis := range t.Sweep {
		n = min(n*len(axis.Values), MaxTasks+1)
	}
	return n
}

// sort moves each task after the tasks that it waits for, and otherwise keeps the
// file's order. It refuses tasks that wait for each other.
func (p *parser) sort(f *File) error {
	at := map[string]int{}
	names := make([]string, len(f.Tasks))
	total := 0
	for i := range f.Tasks {
		names[i] = f.Tasks[i].Submit.Name
		at[names[i]] = i
		total += f.Tasks[i].Count()
	}
	if total > MaxTasks {
		return p.errorf(0, "", "%d tasks, the most of one submission is %d", total, MaxTasks)
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		for _, a := range t.Submit.After {
			if _, known := at[a.Task]; known && a.Task != "" {
				continue
			}
			if n, err := strconv.ParseInt(a.Task, 10, 64); err == nil && n > 0 {
				continue // a task that was submitted before
			}
			return p.errorf(t.afterLine, "tasks."+t.Submit.Name+".after", "unknown task %q; nearest of this file: %s (name a task that was submitted before by its number)", a.Task, suggest.Names(a.Task, names, 1)[0])
		}
	}
	s := sorter{parser: p, file: f, at: at, done: make([]int, len(f.Tasks))}
	for i := range f.Tasks {
		if err := s.visit(i); err != nil {
			return err
		}
	}
	f.Tasks = s.sorted
	return nil
}

type sorter struct {
	*parser
	file   *File
	at     map[string]int
	done   []int // 1: being visited, 2: sorted
	way    []string
	sorted []Task
}

func (s *sorter) visit(i int) error {
	t := &s.file.Tasks[i]
	switch s.done[i] {
	case 2:
		return nil
	case 1:
		circle := append(slices.Clone(s.way[slices.Index(s.way, t.Submit.Name):]), t.Submit.Name)
		return s.errorf(t.afterLine, "tasks."+t.Submit.Name+".after", "tasks that wait for each other never start: %s", strings.Join(circle, " after "))
	}
	s.done[i] = 1
	s.way = append(s.way, t.Submit.Name)
	for _, a := range t.Submit.After {
		if of, ok := s.at[a.Task]; ok {
			if err := s.visit(of); err != nil {
				return err
			}
		}
	}
	s.way = s.way[:len(s.way)-1]
	s.done[i] = 2
	s.sorted = append(s.sorted, *t)
	return nil
}
