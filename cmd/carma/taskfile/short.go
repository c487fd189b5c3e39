package taskfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
	"carma/internal/suggest"
	"carma/runner/api"
)

// MaxTasks is the largest number of tasks of an array or a sweep.
const MaxTasks = api.MaxTasks

// Array is an array of tasks: its indices, and the number of its tasks that may run at a
// time, or 0 for all.
type Array struct {
	Indices  []int
	Parallel int
}

const arrayExample = "write for example 1-10, 0-20:5, 1,3,5 or 1-1000%8"

var arrayRange = lazyregexp.New(`^(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?$`)

// ParseArray parses FROM-TO, FROM-TO:STEP, or a list of these and of single indices; %N
// at the end is the limit. This is the syntax of sbatch --array. The order is kept. No
// index may occur twice.
func ParseArray(text string) (Array, error) {
	var a Array
	ranges, limit, limited := strings.Cut(text, "%")
	if limited {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > 1e9 {
			return a, fmt.Errorf("%q: %%%s is not a limit from 1 on; %s", text, limit, arrayExample)
		}
		a.Parallel = n
	}
	seen := map[int]bool{}
	for _, part := range strings.Split(ranges, ",") {
		m := arrayRange().FindStringSubmatch(part)
		if m == nil {
			return a, fmt.Errorf("%q: %q is no range of indices; %s", text, part, arrayExample)
		}
		from, _ := strconv.Atoi(m[1])
		to, step := from, 1
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		if m[3] != "" {
			step, _ = strconv.Atoi(m[3])
		}
		switch {
		case to < from:
			return a, fmt.Errorf("%q: %s runs backwards; write %d-%d", text, part, to, from)
		case step < 1:
			return a, fmt.Errorf("%q: a step of 0 never ends; the least is 1", text)
		}
		for i := from; i <= to; i += step {
			if seen[i] {
				return a, fmt.Errorf("%q: index %d comes twice", text, i)
			}
			if len(a.Indices) == MaxTasks {
				return a, fmt.Errorf("%q has more than %d tasks, the most of one submission", text, MaxTasks)
			}
			seen[i] = true
			a.Indices = append(a.Indices, i)
		}
	}
	return a, nil
}

// Axis is one parameter of a sweep with its values as written.
type Axis struct {
	Key    string
	Values []string
}

var axisKey = lazyregexp.New(`^[a-zA-Z][a-zA-Z0-9_.-]*$`)

// ParseAxis reads KEY=VALUE,VALUE.
func ParseAxis(text string) (Axis, error) {
	key, list, _ := strings.Cut(text, "=")
	axis := Axis{Key: key}
	if list != "" {
		axis.Values = strings.Split(list, ",")
	}
	return axis, axis.check()
}

func (a Axis) check() error {
	switch {
	case !axisKey().MatchString(a.Key):
		return fmt.Errorf("%q is not a parameter's name: letters, digits, '_', '.' and '-', beginning with a letter; write for example lr=0.1,0.01", a.Key)
	case len(a.Values) == 0:
		return fmt.Errorf("%s has no values; write for example %s=0.1,0.01", a.Key, a.Key)
	case slices.Contains(a.Values, ""):
		return fmt.Errorf("%s has an empty value; write for example %s=0.1,0.01", a.Key, a.Key)
	}
	for i, v := range a.Values {
		if slices.Contains(a.Values[:i], v) {
			return fmt.Errorf("%s has the value %s twice", a.Key, v)
		}
		if _, err := strconv.Atoi(v); a.IsBatch() && (err != nil || v[0] == '-' || v == "0") {
			return fmt.Errorf("%s is the batch size, and %q is not a whole number from 1 on", a.Key, v)
		}
	}
	return nil
}

// IsBatch reports whether the parameter is the batch size.
func (a Axis) IsBatch() bool {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(a.Key)) {
	case "bs", "batchsize":
		return true
	}
	return false
}

// Variable returns the name of the environment variable with the parameter's value.
func (a Axis) Variable() string {
	return "CARMA_SWEEP_" + strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return r
	}, strings.ToUpper(a.Key))
}

var conditions = []string{"ok", "any", "started"}

// ParseAfter reads TASK or TASK:CONDITION.
func ParseAfter(text string) (api.Dependency, error) {
	task, condition, with := strings.Cut(text, ":")
	switch {
	case task == "":
		return api.Dependency{}, fmt.Errorf("%q names no task; write for example 17, train or train:any", text)
	case with && !slices.Contains(conditions, condition):
		return api.Dependency{}, fmt.Errorf("%q: unknown condition %q; nearest: %s (there are ok, any and started)", text, condition, suggest.Names(condition, conditions, 1)[0])
	}
	return api.Dependency{Task: task, Condition: condition}, nil
}
