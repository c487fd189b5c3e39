package pick

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"carma/cmd/carma/cli"
	"carma/internal/suggest"
	"carma/mapper/model"
	"carma/runner/api"
)

// filter is one --filter. As with docker, a task must match one filter of each key, and
// the filters of all labels.
type filter struct{ key, value string }

// fitters lists the keys of filters, in the order of the help text.
var fitters = []struct {
	key  string
	fits func(t *api.Task, value string) bool
}{
	{"status", func(t *api.Task, v string) bool { return slices.Contains(phases(v), t.Phase) }},
	{"name", func(t *api.Task, v string) bool {
		fits, _ := path.Match(v, t.Name)
		return fits || !strings.ContainsAny(v, "*?[") && strings.Contains(t.Name, v)
	}},
	{"label", func(t *api.Task, v string) bool {
		key, want, both := strings.Cut(v, "=")
		has, ok := t.Submit.Labels[key]
		return ok && (!both || has == want)
	}},
	{"user", func(t *api.Task, v string) bool { return t.User == v }},
	{"group", func(t *api.Task, v string) bool { return t.Group == v }},
	{"image", func(t *api.Task, v string) bool {
		name := strings.TrimPrefix(t.Image, v)
		return t.Image == v || name != t.Image && strings.HasPrefix(name, ":")
	}},
	{"gpu", onGPU},
	{"priority", func(t *api.Task, v string) bool { return t.Priority == v }},
	{"exited", func(t *api.Task, v string) bool { return t.ExitCode != nil && strconv.Itoa(*t.ExitCode) == v }},
}

// onGPU reports whether a task has, or last had, a GPU with this index or UUID.
func onGPU(t *api.Task, v string) bool {
	last := cli.LastAttempt(t)
	return last != nil && (cli.Placed(t) || t.Finished()) && slices.ContainsFunc(last.GPUs, func(g api.GPURef) bool {
		return strconv.Itoa(g.Index) == v || g.UUID == v
	})
}

func filterKeys() (keys []string) {
	for _, f := range fitters {
		keys = append(keys, f.key)
	}
	return keys
}

// statuses maps words to phases: docker's words, Slurm's, and plain ones.
var statuses = map[string][]string{
	"waiting":   {string(model.Estimating), string(model.Held), string(model.Queued), string(model.Recovering)},
	"pending":   {string(model.Estimating), string(model.Held), string(model.Queued), string(model.Recovering)},
	"created":   {string(model.Estimating), string(model.Held), string(model.Queued), string(model.Recovering)},
	"paused":    {string(model.Suspending), string(model.Suspended), string(model.Resuming)},
	"exited":    finished,
	"finished":  finished,
	"completed": {string(model.Succeeded)},
}

// phases returns the phases for a status, or none if there is no such status.
func phases(status string) []string {
	if several := statuses[status]; several != nil {
		return several
	}
	if slices.Contains(allPhases, status) {
		return []string{status}
	}
	return nil
}

var allPhases = func() (names []string) {
	for _, p := range model.Phases {
		names = append(names, string(p))
	}
	return names
}()

// ofFinished reports whether a filter requests finished tasks.
func (f filter) ofFinished() bool {
	if f.key == "status" {
		return slices.ContainsFunc(phases(f.value), func(p string) bool { return slices.Contains(finished, p) })
	}
	return f.key == "exited"
}

// fits reports whether a task passes all filters.
func (s *Selector) fits(t *api.Task) bool {
	for _, k := range fitters {
		asked, passed := false, false
		for _, f := range s.filters {
			if f.key != k.key {
				continue
			}
			ok := k.fits(t, f.value)
			if k.key == "label" && !ok {
				return false
			}
			asked, passed = true, passed || ok
		}
		if asked && !passed {
			return false
		}
	}
	return true
}

// filterValue is the flag --filter.
type filterValue struct{ s *Selector }

func (v *filterValue) String() string { return "" }
func (v *filterValue) Type() string   { return "key=value" }

func (v *filterValue) Set(text string) error { return v.s.Filter(text) }

// Filter adds a filter, like --filter.
func (s *Selector) Filter(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || value == "" {
		return cli.Usagef("write for example status=running", "%q is not key=value", text)
	}
	if err := suggest.OneOf(key, filterKeys()); err != nil {
		return err
	}
	if key == "status" && phases(value) == nil {
		return suggest.OneOf(value, append(slices.Clone(allPhases), "waiting", "finished"))
	}
	if _, err := path.Match(value, ""); key == "name" && err != nil {
		return cli.Usagef("write for example name=exp-*", "%q is no pattern", value)
	}
	s.filters = append(s.filters, filter{key, value})
	return nil
}
