package taskfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
	"carma/internal/suggest"
	"carma/runner/api"
)

// Expand makes the tasks of an array and a sweep: all combinations. The first parameter
// changes slowest, the index fastest. A task gets a parameter's value in its environment,
// as a label, and in place of {key} in its command and variables. Without an array and a
// sweep, Expand returns one task.
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

// Unused returns a line for each parameter of the sweep that no word of the command, the
// entrypoint or the variables names. It may be a mistake.
func (t *Task) Unused() (notes []string) {
	given := strings.Join(slices.Concat(t.Submit.Command, t.Submit.Entrypoint, t.Submit.Env), " ")
	for _, axis := range t.Sweep {
		if axis.IsBatch() || strings.Contains(given, "{"+axis.Key+"}") || strings.Contains(given, axis.Variable()) {
			continue
		}
		note := fmt.Sprintf("sweep %s: no word of the command has {%s}; the tasks get it as %s only", axis.Key, axis.Key, axis.Variable())
		for _, m := range braced().FindAllStringSubmatch(given, -1) {
			if len(suggest.Near(m[1], []string{axis.Key})) > 0 && !slices.ContainsFunc(t.Sweep, func(a Axis) bool { return a.Key == m[1] }) {
				note += "; did you mean it by " + m[0] + "?"
				break
			}
		}
		notes = append(notes, note)
	}
	return notes
}

var braced = lazyregexp.New(`\{([a-zA-Z][a-zA-Z0-9_.-]*)\}`)

// element returns the i-th task, from 0.
func (t *Task) element(i int) api.Submit {
	s := t.Submit
	s.Parallel = max(s.Parallel, t.Array.Parallel)
	var known []string // pairs of {key} and value
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
			s.BatchSize, _ = strconv.Atoi(value) // checked when the sweep was read
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
