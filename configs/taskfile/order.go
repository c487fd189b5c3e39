package taskfile

import (
	"slices"
	"strconv"
	"strings"

	"carma/configs/nearest"
)

// complete checks what holds between the keys of a task.
func (p *parser) complete(f *File, t *Task) error {
	key := ""
	if len(f.Tasks) > 1 || t.Name != "" {
		key = "tasks." + t.Name
	}
	for _, v := range t.env {
		t.Env = append(t.Env, v.key+"="+v.value)
	}
	for _, v := range t.labels {
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[v.key] = v.value
	}
	switch {
	case t.Image == "":
		return p.errorf(t.Line, join(key, "image"), "missing; a task runs a container image")
	case t.Parallel > 0 && t.Array.Parallel > 0 && t.Parallel != t.Array.Parallel:
		return p.errorf(t.Line, join(key, "parallel"), "%d, and the array says %%%d; leave one of them out", t.Parallel, t.Array.Parallel)
	case t.Parallel > 0 && len(t.Array.Indices) == 0 && len(t.Sweep) == 0:
		return p.errorf(t.Line, join(key, "parallel"), "without an array or a sweep there is one task")
	case t.Probe && t.Mem > 0:
		return p.errorf(t.Line, join(key, "probe"), "mem says what it needs; leave one of them out")
	case t.WorkDir != "" && t.WorkDir[0] != '/':
		return p.errorf(t.Line, join(key, "workdir"), "%s is not absolute; it is a folder in the container", t.WorkDir)
	}
	if n := t.Count(); n > MaxTasks {
		return p.errorf(t.Line, join(key, "sweep"), "it comes to more than %d tasks, the most of one submission", MaxTasks)
	}
	return nil
}

// Count is how many tasks an entry stands for, MaxTasks+1 at most.
func (t *Task) Count() int {
	n := max(1, len(t.Array.Indices))
	for _, axis := range t.Sweep {
		n = min(n*len(axis.Values), MaxTasks+1)
	}
	return n
}

// sort brings the tasks into an order in which each comes after those it waits
// for, and refuses those that wait for each other. Else the order of the file
// is kept.
func (p *parser) sort(f *File) error {
	at := map[string]int{}
	names := make([]string, len(f.Tasks))
	total := 0
	for i := range f.Tasks {
		names[i] = f.Tasks[i].Name
		at[names[i]] = i
		total += f.Tasks[i].Count()
	}
	if total > MaxTasks {
		return p.errorf(0, "", "%d tasks, the most of one submission is %d", total, MaxTasks)
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		for _, a := range t.After {
			if _, known := at[a.Task]; known && a.Task != "" {
				continue
			}
			if n, err := strconv.ParseInt(a.Task, 10, 64); err == nil && n > 0 {
				continue // a task that was submitted before
			}
			return p.errorf(t.afterLine, "tasks."+t.Name+".after", "unknown task %q; nearest of this file: %s (one that was submitted before goes by its number)", a.Task, nearest.Names(a.Task, names, 1)[0])
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
	done   []int // 1: on the way, 2: sorted
	way    []string
	sorted []Task
}

func (s *sorter) visit(i int) error {
	t := &s.file.Tasks[i]
	switch s.done[i] {
	case 2:
		return nil
	case 1:
		circle := append(slices.Clone(s.way[slices.Index(s.way, t.Name):]), t.Name)
		return s.errorf(t.afterLine, "tasks."+t.Name+".after", "tasks that wait for each other never start: %s", strings.Join(circle, " after "))
	}
	s.done[i] = 1
	s.way = append(s.way, t.Name)
	for _, a := range t.After {
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
