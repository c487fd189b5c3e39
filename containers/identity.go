package containers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// AllLabels are what the container of a spec is labelled with. Where a key is
// in both, Identity's value counts.
func (s Spec) AllLabels() map[string]string {
	all := make(map[string]string, len(s.Labels)+len(s.Identity))
	maps.Copy(all, s.Labels)
	maps.Copy(all, s.Identity)
	return all
}

// Recognize returns nil if a container that has the spec's name and these
// labels is the spec's own, else an error that wraps [ErrTaken]. A spec without
// an identity recognizes none.
func (s Spec) Recognize(id string, labels map[string]string) error {
	if len(s.Identity) == 0 {
		return fmt.Errorf("%w: %s", ErrTaken, id)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Identity)) {
		if got, ok := labels[k]; !ok || got != s.Identity[k] {
			return fmt.Errorf("%w: %s has not %s=%s; it is left alone", ErrTaken, id, k, s.Identity[k])
		}
	}
	return nil
}

// checkText refuses what no program can be given: the zero byte ends a string
// there.
func (s Spec) checkText() error {
	for what, texts := range map[string][]string{
		"environment": s.Env, "command": s.Command, "entrypoint": s.Entrypoint,
		"working directory": {s.WorkDir}, "user": {s.User}, "image": {s.Image},
	} {
		if slices.ContainsFunc(texts, func(t string) bool { return strings.ContainsRune(t, 0) }) {
			return fmt.Errorf("%w: the %s has a zero byte, which no program can be given", ErrInvalid, what)
		}
	}
	return nil
}

// Check refuses a spec that no engine can make a container from, with an error
// that wraps [ErrInvalid]. Drivers ask it before they ask their engine.
func (s Spec) Check() error {
	if s.Name == "" || s.Image == "" {
		return fmt.Errorf("%w: name and image are required", ErrInvalid)
	}
	for _, m := range s.Mounts {
		if strings.ContainsRune(m.Source+m.Target, 0) {
			return fmt.Errorf("%w: a mount's path has a zero byte", ErrInvalid)
		}
	}
	return s.checkText()
}
