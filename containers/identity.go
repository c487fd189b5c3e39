package containers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// AllLabels returns all labels of the spec's container. If a key is in both Labels and
// Identity, Identity's value counts.
func (s Spec) AllLabels() map[string]string {
	all := make(map[string]string, len(s.Labels)+len(s.Identity))
	maps.Copy(all, s.Labels)
	maps.Copy(all, s.Identity)
	return all
}

// Recognize checks the labels of a container that has the spec's name. It returns nil if
// the container is the spec's own, otherwise an error that wraps [ErrTaken]. A spec
// without an identity recognizes no container.
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

// checkText refuses a zero byte in any text for the program, because it would end the
// string.
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

// Check refuses a spec from which no engine can make a container, and options that the
// driver does not support. The error wraps [ErrInvalid]. Drivers call it before they ask their
// engine.
func (s Spec) Check(d Driver) error {
	if s.Name == "" || s.Image == "" {
		return fmt.Errorf("%w: name and image are required", ErrInvalid)
	}
	for _, m := range s.Mounts {
		if strings.ContainsRune(m.Source+m.Target, 0) {
			return fmt.Errorf("%w: a mount's path has a zero byte", ErrInvalid)
		}
	}
	if err := s.checkText(); err != nil {
		return err
	}
	if err := s.checkSyntax(); err != nil {
		return err
	}
	return CheckOptions(d, &s.ContainerOptions)
}
