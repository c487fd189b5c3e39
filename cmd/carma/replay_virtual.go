package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"carma/mapper/sim"
	"carma/mapper/sim/study"
)

// virtualReplay is a replay in virtual time, and what becomes of its result.
type virtualReplay struct {
	*study.Study
	console *console
	bounds  *study.Bounds // nil: none
	record  bool          // keep what the bounds came to
	files   *replayFiles
}

// virtualFlags are the flags of a replay in virtual time, as they were typed.
type virtualFlags struct {
	study.Rules
	gpus    string
	count   int
	startUp time.Duration
	check   string // file of bounds; empty: none
	record  bool
	sharing string
	// checkpoint is after how much work tasks save it; 0: never.
	checkpoint time.Duration
}

// newVirtualReplay checks the command line and reads the traces.
func (a *app) newVirtualReplay(f virtualFlags, args []string) (*virtualReplay, error) {
	c := a.console()
	v := &virtualReplay{Study: &study.Study{StartUp: f.startUp, Checkpoint: f.checkpoint, Progress: replayProgress(c)}, console: c, record: f.record}
	var err error
	if f.check != "" {
		if v.bounds, err = study.ReadBounds(f.check); err != nil {
			return nil, err
		}
		f.count = cmp.Or(f.count, v.bounds.Count)
	} else if f.record {
		return nil, usagef("write for example --check test/replay-bounds.yaml --record", "--record keeps values in the file of --check")
	}
	if v.StartUp < 0 || v.StartUp > time.Hour {
		return nil, usagef("", "--start-up: %s is not between 0 and 1h", v.StartUp)
	}
	if v.Checkpoint < 0 {
		return nil, usagef("write for example 10m", "--checkpoint: %s is negative", v.Checkpoint)
	}
	if v.bounds != nil && f.Policies == "" && f.Estimator == study.Estimators[0] {
		v.Rows, err = v.bounds.Rows(f.Rules)
	} else {
		v.Rows, err = f.Rows()
	}
	if err != nil {
		return nil, err
	}
	if v.Sharing, err = sim.ParseSharing(f.sharing); err != nil {
		return nil, usagef("", "--sharing: %v", err)
	}
	if v.Server, err = study.Server(f.gpus, f.count); err != nil {
		return nil, err
	}
	if v.bounds != nil && len(args) == 0 {
		v.Traces, err = v.bounds.Read()
	} else {
		v.Traces, err = study.ReadTraces(args)
	}
	if err == nil && v.bounds != nil {
		err = v.bounds.Fit(v.Traces, v.Rows)
	}
	return v, err
}

// replayProgress keeps the status line of a long replay, or is nil.
func replayProgress(c *console) study.Progress {
	if !c.live {
		return nil
	}
	shown := time.Now()
	return func(trace, policy string, ended, tasks int) {
		if time.Since(shown) > beat {
			shown = time.Now()
			c.status(fmt.Sprintf("%s %s, policy %s: %d/%d done", bar(ended, tasks, 20), trace, policy, ended, tasks))
		}
	}
}

// replayVirtual runs v and prints how it went.
func (a *app) replayVirtual(v *virtualReplay, asJSON bool) error {
	v.Timeline = v.files.charts()
	all, err := v.Run()
	v.console.status("")
	if err == nil {
		err = v.files.write(v, all)
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = a.json(v.json(all))
	} else {
		for i := range all {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			err = errors.Join(err, v.print(a.out, &all[i]))
		}
		if len(all) > 1 {
			err = errors.Join(err, printOverall(a.out, all))
		}
	}
	if err != nil {
		return err
	}
	short, err := v.compare(a, all, asJSON)
	if err != nil {
		return err
	}
	if short || slices.ContainsFunc(all, study.Replayed.Failed) {
		return codeError(exitFailed)
	}
	return nil
}

// compare prints what the bounds say, and keeps what they came to. It reports
// whether one does not hold.
func (v *virtualReplay) compare(a *app, all []study.Replayed, asJSON bool) (short bool, err error) {
	if v.bounds == nil {
		return false, nil
	}
	w := a.out
	if asJSON {
		w = a.err
	} else {
		fmt.Fprintln(w)
	}
	line := func(f study.Finding, what string) {
		fmt.Fprintf(w, "%s:%d: %s%s, %s: %s\n", v.bounds.File, f.Line, what, printable(f.Trace), f.Label, f.What)
	}
	moved, kept := v.bounds.Moved(all, v.Rows)
	for _, f := range moved {
		line(f, "moved: ")
	}
	if kept > 0 {
		fmt.Fprintf(w, "%s: %d of %d kept values moved\n", v.bounds.File, len(moved), kept)
	}
	findings, total := v.bounds.Check(all, v.Rows)
	for _, f := range findings {
		line(f, "")
	}
	if len(findings) == 0 {
		fmt.Fprintf(w, "%s: all %d bounds hold\n", v.bounds.File, total)
	} else {
		fmt.Fprintf(w, "%s: %d of %d bounds do not hold\n", v.bounds.File, len(findings), total)
	}
	if !v.record {
		return len(findings) > 0, nil
	}
	text, err := v.bounds.Recorded(all, v.Rows)
	if err == nil {
		err = replaceFile(v.bounds.File, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
	}
	return len(findings) > 0, err
}
