package main

import (
	"slices"
	"strings"

	"carma/configs"
	"carma/configs/nearest"
	"carma/mapper"
	"carma/mapper/sim"
)

// replayRow is one line of a replay's tables: rules, what is known of memory
// and what the monitor makes of its readings.
type replayRow struct {
	name      string // the policy's or the preset's
	label     string // name, with the estimator where rows differ by it
	estimator string
	preset    bool
	options   mapper.Options
	score     sim.Score
}

// rowFlags are the flags that rows are made of, as they were typed.
type rowFlags struct {
	policies  string
	estimator string
	lookAhead int // 0: as the policy has it
	// set are rules of the policies, KEY=VALUE.
	set []string
}

// rows are the policies under each estimator, and the presets as they are.
func (f rowFlags) rows() ([]replayRow, error) {
	methods, err := estimatorList(f.estimator)
	if err != nil {
		return nil, err
	}
	names := mapper.PolicyNames()
	if f.policies != "" {
		names = splitList(f.policies)
	}
	var rows []replayRow
	if i := slices.Index(names, ablation); i >= 0 {
		names = slices.Replace(slices.Clone(names), i, i+1, ablationNames()...)
	}
	if i := slices.Index(names, byEstimator); i >= 0 {
		names = slices.Replace(slices.Clone(names), i, i+1, byEstimatorNames()...)
	}
	for _, name := range names {
		more, err := f.rowsOf(name, methods)
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			if slices.ContainsFunc(rows, func(o replayRow) bool { return o.label == r.label }) {
				return nil, usagef("name it once", "--policy: %s is there twice", r.label)
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// check refuses what makes no rows, and a list of several.
func (f rowFlags) check() error {
	if strings.Contains(f.policies, ",") {
		return usagef("write a bound for each", "--policy: %s are several policies", f.policies)
	}
	_, err := f.rows()
	return err
}

// rowsOf are those of one name. A policy's name comes before a preset's that
// differs from it by case only.
func (f rowFlags) rowsOf(name string, methods []string) ([]replayRow, error) {
	if !slices.Contains(mapper.PolicyNames(), name) {
		if p, ok := presetNamed(name); ok {
			return []replayRow{p.row()}, nil
		}
		all := slices.Concat(mapper.PolicyNames(), presetNames())
		return nil, usagef("there are "+strings.Join(mapper.PolicyNames(), ", ")+" and the presets of carma replay --presets",
			"--policy: unknown policy %q; nearest: %s", name, nearest.Names(name, all, 1)[0])
	}
	var rows []replayRow
	for _, method := range methods {
		r := replayRow{name: name, label: name, estimator: method, options: mapper.DefaultsOf(name), score: sim.ScoreMean}
		if f.lookAhead > 0 {
			r.options.LookAhead = f.lookAhead
		}
		for _, rule := range f.set {
			if err := configs.SetRule(&r.options, rule); err != nil {
				return nil, usagef("", "--set: %v", err)
			}
		}
		if len(methods) > 1 {
			r.label += ":" + method
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// estimatorList reads the methods between commas.
func estimatorList(text string) ([]string, error) {
	var list []string
	for _, method := range splitList(text) {
		if err := oneOf(method, estimators); err != nil {
			return nil, usagef("", "--estimator: %v", err)
		}
		if slices.Contains(list, method) {
			return nil, usagef("name it once", "--estimator: %s is there twice", method)
		}
		list = append(list, method)
	}
	return list, nil
}

// splitList cuts a text at its commas.
func splitList(text string) []string {
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}
