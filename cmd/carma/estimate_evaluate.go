package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"carma/configs/models"
	"carma/estimator/evaluate"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
)

// evaluation is what --evaluate prints.
type evaluation struct {
	File string `json:"file"`
	Set  string `json:"set"`
	// Trainings in the file that have a measured peak; truncated ones died of
	// out-of-memory and are not scored, skipped ones have no measurement, no
	// layers or no model that carma knows.
	Trainings int `json:"trainings"`
	Truncated int `json:"truncated"`
	Skipped   int `json:"skipped"`
	// Scores by the environment the trainings were measured in.
	Environments []scored           `json:"environments"`
	Rows         []evaluate.Outcome `json:"rows,omitempty"`
}

// scored are the estimators on the trainings of one environment; its name is
// empty where the file does not state it.
type scored struct {
	Environment string           `json:"environment"`
	Trainings   int              `json:"trainings"`
	Scores      []evaluate.Score `json:"scores"`
	Published   []evaluate.Score `json:"published,omitempty"`
}

// evaluate scores estimators on a file of measured trainings.
func (a *app) evaluate(o estimateOptions, chosen []methods.Method) error {
	e, err := a.evaluateFile(o, chosen)
	if err != nil {
		return err
	}
	if *o.json {
		return a.json(e)
	}
	a.println(fmt.Sprintf("%s: %d measured trainings (%s); %d more ended out of memory, %d skipped", e.File, e.Trainings, e.Set, e.Truncated, e.Skipped))
	for _, env := range e.Environments {
		a.println()
		a.println(fmt.Sprintf("measured in %s: %d trainings", cmp.Or(env.Environment, "an environment that the file does not state, taken as "+o.environment), env.Trainings))
		if err := a.printScores(env); err != nil {
			return err
		}
	}
	if o.rows {
		return a.printOutcomes(e.Rows)
	}
	return nil
}

func (a *app) printScores(env scored) error {
	right := func(title string) column { return column{title: title, right: true} }
	t := &table{columns: []column{{title: "ESTIMATOR"}, right("ROWS"), right("MEAN"), right("MEDIAN"), right("UNDER"), right("BOUND UNDER"), right("OVERHEAD")}}
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	for _, s := range append(env.Scores, env.Published...) {
		if s.Rows == 0 {
			t.add(s.Method, "0", "-", "-", "-", "-", "-")
			continue
		}
		t.add(s.Method, fmt.Sprint(s.Rows), percent(s.Mean), percent(s.Median), percent(s.Under), percent(s.BoundUnder), percent(s.Overhead))
	}
	if err := t.write(a.out, widthOf(a.out)); err != nil {
		return err
	}
	for _, s := range env.Scores {
		if s.Failed > 0 {
			a.println(fmt.Sprintf("note: %s failed on %d rows; the first: %s", s.Method, s.Failed, printable(s.First)))
		}
	}
	return nil
}

func (a *app) evaluateFile(o estimateOptions, chosen []methods.Method) (*evaluation, error) {
	in := io.Reader(a.in)
	if o.evaluate != "-" {
		f, err := os.Open(o.evaluate)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usagef("", "%s: no such file", o.evaluate)
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	cases, skipped, err := evaluate.Read(in, lookUpMeasured)
	if err != nil {
		return nil, usagef("", "%s: %v", o.evaluate, err)
	}
	e := &evaluation{File: o.evaluate, Skipped: skipped}
	by := map[string][]evaluate.Case{}
	for _, c := range cases {
		e.Set = c.Set
		if c.Truncated {
			e.Truncated++
			continue
		}
		e.Trainings++
		by[c.Environment] = append(by[c.Environment], c)
	}
	for _, env := range slices.Sorted(maps.Keys(by)) {
		scores, outcomes, err := evaluate.Run(by[env], chosen, o.environment, o.confidence)
		if err != nil {
			return nil, err
		}
		for _, m := range chosen {
			if m.Name() != "carma" {
				continue
			}
			seen, err := evaluate.RunSeen(by[env], m, o.environment, o.confidence)
			if err != nil {
				return nil, err
			}
			for _, s := range []evaluate.Score{seen, evaluate.RunAlone(by[env], 2), evaluate.RunAlone(by[env], 1)} {
				if s.Rows > 0 {
					scores = append(scores, s)
				}
			}
		}
		e.Environments = append(e.Environments, scored{env, len(by[env]), scores, evaluate.Published(by[env])})
		if o.rows {
			e.Rows = append(e.Rows, outcomes...)
		}
	}
	return e, nil
}

// lookUpMeasured builds a model that a file of measurements names.
func lookUpMeasured(model string, with models.Overrides) (*models.Config, error) {
	return zoo.Build(model, with)
}

func (a *app) printOutcomes(rows []evaluate.Outcome) error {
	a.println()
	right := func(title string) column { return column{title: title, right: true} }
	t := &table{columns: []column{right("LINE"), {title: "TRAINING", least: 16}, {title: "ESTIMATOR"}, right("MEASURED MIB"), right("POINT MIB"), right("UPPER MIB"), right("ERROR")}}
	for _, r := range rows {
		t.add(fmt.Sprint(r.Row), r.Name, r.Method, fmt.Sprint(r.Measured>>20), fmt.Sprint(r.Point>>20), fmt.Sprint(r.Upper>>20), fmt.Sprintf("%+.1f %%", 100*r.Error))
	}
	return t.write(a.out, widthOf(a.out))
}
