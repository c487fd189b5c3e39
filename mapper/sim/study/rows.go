package study

import (
	"slices"
	"strings"

	"carma/internal/suggest"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/rules"
	"carma/mapper/sim"
)

// Row is one line of a replay's tables: a policy with its options, an estimator and the
// monitor's score.
type Row struct {
	Name      string // name of the policy or the preset
	Label     string // Name, plus the estimator if rows differ in it
	Estimator string
	Preset    bool
	Options   model.Options
	Score     sim.Score
}

// Rules contains the command line's rules for rows.
type Rules struct {
	// Policies lists policies and presets, separated by commas; empty means all policies.
	Policies string
	// Estimator lists one or several of [Estimators], separated by commas.
	Estimator string
	LookAhead int // or 0 for the policy's own
	// Set lists rules of the policies, as KEY=VALUE.
	Set []string
}

// Rows returns the policies with each estimator, and the presets unchanged.
func (f Rules) Rows() ([]Row, error) {
	methods, err := estimatorList(f.Estimator)
	if err != nil {
		return nil, err
	}
	names := policy.Names()
	if f.Policies != "" {
		names = splitList(f.Policies)
	}
	var rows []Row
	var all []string
	for _, name := range names {
		if group := known().Groups[name]; group != nil {
			all = append(all, group...)
		} else {
			all = append(all, name)
		}
	}
	for _, name := range all {
		more, err := f.rowsOf(name, methods)
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			if slices.ContainsFunc(rows, func(o Row) bool { return o.Label == r.Label }) {
				return nil, wrongf("name it once", "--policy: %s is there twice", r.Label)
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// check returns an error for rules without rows, or with several policies.
func (f Rules) check() error {
	if strings.Contains(f.Policies, ",") {
		return wrongf("write a bound for each", "--policy: %s are several policies", f.Policies)
	}
	_, err := f.Rows()
	return err
}

// rowsOf returns the rows for one name. A policy's name has precedence over a preset's
// name that differs only in case.
func (f Rules) rowsOf(name string, methods []string) ([]Row, error) {
	if !slices.Contains(policy.Names(), name) {
		if p, ok := presetNamed(name); ok {
			return []Row{p.Row()}, nil
		}
		all := slices.Concat(policy.Names(), PresetNames())
		return nil, wrongf("there are "+strings.Join(policy.Names(), ", ")+" and the presets of carma replay --presets",
			"--policy: unknown policy %q; nearest: %s", name, suggest.Names(name, all, 1)[0])
	}
	var rows []Row
	for _, method := range methods {
		r := Row{Name: name, Label: name, Estimator: method, Options: mapper.DefaultsOf(name), Score: sim.ScoreMean}
		if f.LookAhead > 0 {
			r.Options.LookAhead = f.LookAhead
		}
		for _, rule := range f.Set {
			if err := rules.Apply(&r.Options, rule); err != nil {
				return nil, wrongf("", "--set: %v", err)
			}
		}
		if len(methods) > 1 {
			r.Label += ":" + method
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// estimatorList parses estimators separated by commas.
func estimatorList(text string) ([]string, error) {
	var list []string
	for _, method := range splitList(text) {
		if !slices.Contains(Estimators, method) {
			if near := suggest.Near(method, Estimators); len(near) > 0 {
				return nil, wrongf("", "--estimator: unknown word %q; did you mean %s?", method, near[0])
			}
			return nil, wrongf("", "--estimator: %q is not one of %s", method, strings.Join(Estimators, ", "))
		}
		if slices.Contains(list, method) {
			return nil, wrongf("name it once", "--estimator: %s is there twice", method)
		}
		list = append(list, method)
	}
	return list, nil
}

// splitList splits a text at its commas.
func splitList(text string) []string {
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}
