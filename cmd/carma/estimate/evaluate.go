package estimate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"carma/cmd/carma/cli"
	"carma/estimator/evaluate"
	"carma/estimator/methods"
	"carma/estimator/networks/named"
)

// evaluation is the output of --evaluate.
type evaluation struct {
	File string `json:"file"`
	Set  string `json:"set"`
	// Trainings counts the trainings in the file with a measured peak. Truncated ones ran
	// out of memory and are not scored. Skipped ones have no measurement, no layers or no
	// known model.
	Trainings int `json:"trainings"`
	Truncated int `json:"truncated"`
	Skipped   int `json:"skipped"`
	// Environments contains scores by the environment of the measurement.
	Environments []evaluate.Scored  `json:"environments"`
	Rows         []evaluate.Outcome `json:"rows,omitempty"`
}

// scoreFile scores estimators on a file of measured trainings.
func scoreFile(a *cli.App, o options, chosen []methods.Method) error {
	e, err := evaluateFile(a, o, chosen)
	if err != nil {
		return err
	}
	if *o.json {
		return a.JSON(e)
	}
	a.Println(fmt.Sprintf("%s: %d measured trainings (%s); %d more ended out of memory, %d skipped", e.File, e.Trainings, e.Set, e.Truncated, e.Skipped))
	for _, env := range e.Environments {
		a.Println()
		a.Println(fmt.Sprintf("measured in %s: %d trainings", cmp.Or(env.Environment, "an environment that the file does not state, taken as "+o.environment), env.Trainings))
		if err := printScores(a, env); err != nil {
			return err
		}
	}
	if o.rows {
		return printOutcomes(a, e.Rows)
	}
	return nil
}

func printScores(a *cli.App, env evaluate.Scored) error {
	right := func(title string) cli.Column { return cli.Column{Title: title, Right: true} }
	t := &cli.Table{Columns: []cli.Column{{Title: "ESTIMATOR"}, right("ROWS"), right("MEAN"), right("MEDIAN"), right("UNDER"), right("BOUND UNDER"), right("OVERHEAD")}}
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	for _, s := range append(env.Scores, env.Published...) {
		if s.Rows == 0 {
			t.Add(s.Method, "0", "-", "-", "-", "-", "-")
			continue
		}
		t.Add(s.Method, fmt.Sprint(s.Rows), percent(s.Mean), percent(s.Median), percent(s.Under), percent(s.BoundUnder), percent(s.Overhead))
	}
	if err := a.Print(t); err != nil {
		return err
	}
	for _, s := range env.Scores {
		if s.Failed > 0 {
			a.Println(fmt.Sprintf("note: %s failed on %d rows; the first: %s", s.Method, s.Failed, cli.Printable(s.First)))
		}
	}
	return nil
}

func evaluateFile(a *cli.App, o options, chosen []methods.Method) (*evaluation, error) {
	in := io.Reader(a.In)
	if o.evaluate != "-" {
		f, err := os.Open(o.evaluate)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, cli.Usagef("", "%s: no such file", o.evaluate)
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	cases, skipped, err := evaluate.Read(in, named.Build)
	if err != nil {
		return nil, cli.Usagef("", "%s: %v", o.evaluate, err)
	}
	e := &evaluation{File: o.evaluate, Skipped: skipped}
	for _, c := range cases {
		e.Set = c.Set
		if c.Truncated {
			e.Truncated++
		} else {
			e.Trainings++
		}
	}
	var rows []evaluate.Outcome
	if e.Environments, rows, err = evaluate.Environments(cases, chosen, o.environment, o.confidence); err != nil {
		return nil, err
	}
	for i := range e.Environments {
		env := &e.Environments[i]
		env.Scores = append(env.Scores, env.Seen...)
	}
	if o.rows {
		e.Rows = rows
	}
	return e, nil
}

func printOutcomes(a *cli.App, rows []evaluate.Outcome) error {
	a.Println()
	right := func(title string) cli.Column { return cli.Column{Title: title, Right: true} }
	t := &cli.Table{Columns: []cli.Column{right("LINE"), {Title: "TRAINING", Least: 16}, {Title: "ESTIMATOR"}, right("MEASURED MIB"), right("POINT MIB"), right("UPPER MIB"), right("ERROR")}}
	for _, r := range rows {
		t.Add(fmt.Sprint(r.Row), r.Name, r.Method, fmt.Sprint(r.Measured>>20), fmt.Sprint(r.Point>>20), fmt.Sprint(r.Upper>>20), fmt.Sprintf("%+.1f %%", 100*r.Error))
	}
	return a.Print(t)
}
