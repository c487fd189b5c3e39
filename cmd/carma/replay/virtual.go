package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"carma/cmd/carma/cli"
	"carma/mapper/sim/study"
)

// virtualReplay is one or more replays in virtual time, and the outputs of their results.
type virtualReplay struct {
	parts   []*part
	console *cli.Console
	record  bool // store the results of the bounds
	files   *replayFiles
}

// part is a replay under one set of conditions: the conditions of the command line, or of
// a section of the file of bounds.
type part struct {
	*study.Study
	bounds *study.Bounds // or nil
	all    []study.Replayed
}

// newVirtualReplay checks the command line and reads the traces.
func newVirtualReplay(a *cli.App, f virtualFlags, args []string) (*virtualReplay, error) {
	v := &virtualReplay{console: a.Console(), record: f.record}
	sections := []*study.Bounds{nil}
	var err error
	if f.check != "" {
		if sections, err = study.ReadBounds(f.check); err != nil {
			return nil, err
		}
	} else if f.record {
		return nil, cli.Usagef("write for example --check test/replay-bounds.yaml --record", "--record keeps values in the file of --check")
	}
	if f.startUp > time.Hour {
		return nil, cli.Usagef("", "--start-up: %s is not between 0 and 1h", f.startUp)
	}
	for _, bounds := range sections {
		p, err := f.part(bounds, args)
		if err != nil {
			return nil, err
		}
		p.Progress = progress(v.console)
		v.parts = append(v.parts, p)
	}
	return v, nil
}

// traces returns the number of replays, each of one trace under one set of conditions.
func (v *virtualReplay) traces() (n int) {
	for _, p := range v.parts {
		n += len(p.Traces)
	}
	return n
}

// part returns the replay for one section of the bounds, which may be nil.
func (f virtualFlags) part(bounds *study.Bounds, args []string) (*part, error) {
	p := &part{Study: &study.Study{StartUp: f.startUp, Checkpoint: f.checkpoint}, bounds: bounds}
	var err error
	if bounds != nil && f.Policies == "" && f.Estimator == study.Estimators[0] {
		p.Rows, err = bounds.Rows(f.Rules)
	} else {
		p.Rows, err = f.Rows()
	}
	if err != nil {
		return nil, err
	}
	conditions, err := f.conditions(bounds)
	if err != nil {
		return nil, err
	}
	p.Under(conditions)
	count := f.count
	if bounds != nil {
		count = cmp.Or(count, bounds.Count)
	}
	if p.Server, err = study.Server(f.gpus, count); err != nil {
		return nil, err
	}
	if f.machines > 1 {
		if p.Server, err = study.Machines(p.Server, f.machines); err != nil {
			return nil, err
		}
	}
	if n := len(p.Server.GPUs); conditions.Drain.GPU >= n {
		return nil, cli.Usagef("", "--drain: %s has no GPU %d; its GPUs are 0 to %d", p.Server.Name, conditions.Drain.GPU, n-1)
	}
	if bounds != nil && len(args) == 0 {
		p.Traces, err = bounds.Read()
	} else {
		p.Traces, err = study.ReadTraces(args)
	}
	if err == nil && bounds != nil {
		err = bounds.Fit(p.Traces, p.Rows)
	}
	return p, err
}

// conditions returns the section's conditions, overridden by typed ones.
func (f virtualFlags) conditions(bounds *study.Bounds) (study.Conditions, error) {
	c := study.Conditions{Know: study.KnowAll}
	if bounds != nil {
		c = bounds.Conditions
	}
	for _, name := range conditionFlags {
		key, value := name, f.flags.Lookup(name).Value.String()
		if name == "no-repeats" {
			key, value = "repeats", map[string]string{"true": "false", "false": "true"}[value]
		}
		if f.flags.Changed(name) {
			if err := c.Set(key, value); err != nil {
				return c, cli.Usagef("", "--%v", err)
			}
		}
	}
	return c, nil
}

// progress returns a function that updates the status line of a long replay, or nil.
func progress(c *cli.Console) study.Progress {
	if !c.Live {
		return nil
	}
	shown := time.Now()
	return func(trace, policy string, ended, tasks int) {
		if time.Since(shown) > beat {
			shown = time.Now()
			c.Status(fmt.Sprintf("%s %s, policy %s: %d/%d done", bar(ended, tasks, 20), trace, policy, ended, tasks))
		}
	}
}

// runVirtual runs v and prints the results.
func runVirtual(a *cli.App, v *virtualReplay, asJSON bool) error {
	failed := false
	for _, p := range v.parts {
		p.Timeline = v.files.charts()
		var err error
		if p.all, err = p.Run(); err != nil {
			v.console.Status("")
			return err
		}
		failed = failed || slices.ContainsFunc(p.all, study.Replayed.Failed)
	}
	v.console.Status("")
	if err := v.files.write(v); err != nil {
		return err
	}
	if err := v.show(a, asJSON); err != nil {
		return err
	}
	short, err := v.compare(a, asJSON)
	if err != nil {
		return err
	}
	if short || failed {
		return cli.CodeError(cli.ExitFailed)
	}
	return nil
}

// show prints the results.
func (v *virtualReplay) show(a *cli.App, asJSON bool) (err error) {
	if asJSON {
		return a.JSON(v.json())
	}
	for n, p := range v.parts {
		for i := range p.all {
			if n+i > 0 {
				fmt.Fprintln(a.Out)
			}
			err = errors.Join(err, p.print(a.Out, &p.all[i]))
		}
		if len(p.all) > 1 {
			err = errors.Join(err, p.printOverall(a.Out))
		}
	}
	return err
}
