package taskfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carma/runner/api"
)

// Expand makes the tasks of an array and a sweep: all combinations, the first
// parameter changing slowest and the index fastest. A value reaches a task in
// its environment, as a label, and where its command and its variables have
// {key}. Without an array and a sweep it is one task.
func (t *Task) Expand() ([]api.Submit, error) {
	n := t.Count()
	if n > MaxTasks {
		return nil, fmt.Errorf("more than %d tasks, the most of one submission", MaxTasks)
	}
	tasks := make([]api.Submit, n)
	for i := range n {
		tasks[i] = t.element(i)
	}
	return tasks, nil
}

// element is the i-th task.
func (t *Task) element(i int) api.Submit {
	s := t.Submit
	s.Parallel = max(s.Parallel, t.Array.Parallel)
	var known []string // {key}, value, ...
	var env []string
	if indices := t.Array.Indices; len(indices) > 0 {
		index := indices[i%len(indices)]
		i /= len(indices)
		s.Array = &api.ArrayElement{Index: index, Count: len(indices), Min: slices.Min(indices), Max: slices.Max(indices)}
		known = append(known, "{index}", strconv.Itoa(index))
	}
	s.Labels = maps.Clone(t.Submit.Labels)
	for _, axis := range slices.Backward(t.Sweep) {
		value := axis.Values[i%len(axis.Values)]
		i /= len(axis.Values)
		known = append(known, "{"+axis.Key+"}", value)
		env = append(env, axis.Variable()+"="+value)
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[axis.Key] = value
		if axis.IsBatch() {
			s.BatchSize, _ = strconv.Atoi(value) // checked with the values
		}
	}
	replace := strings.NewReplacer(known...)
	s.Command, s.Entrypoint, s.Env = replaced(replace, s.Command), replaced(replace, s.Entrypoint), replaced(replace, s.Env)
	slices.Reverse(env)
	s.Env = append(env, s.Env...)
	return s
}

func replaced(r *strings.Replacer, words []string) []string {
	if words == nil {
		return nil
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = r.Replace(w)
	}
	return out
}
