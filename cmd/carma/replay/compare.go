package replay

import (
	"fmt"
	"io"
	"os"
	"strings"

	"carma/cmd/carma/cli"
	"carma/mapper/sim/study"
)

// compare prints the results of the bounds, and stores them on request. short is set if a
// bound does not hold.
func (v *virtualReplay) compare(a *cli.App, asJSON bool) (short bool, err error) {
	if v.parts[0].bounds == nil {
		return false, nil
	}
	w, file := a.Out, v.parts[0].bounds.File
	if asJSON {
		w = a.Err
	} else {
		fmt.Fprintln(w)
	}
	var moved, findings []study.Finding
	kept, total := 0, 0
	for _, p := range v.parts {
		m, k := p.bounds.Moved(p.all, p.Rows)
		f, n := p.bounds.Check(p.all, p.Rows)
		moved, kept, findings, total = append(moved, m...), kept+k, append(findings, f...), total+n
	}
	list := func(of []study.Finding, what string) {
		for _, f := range of {
			fmt.Fprintf(w, "%s:%d: %s%s, %s: %s\n", file, f.Line, what, cli.Printable(f.Trace), f.Label, f.What)
		}
	}
	list(moved, "moved: ")
	if kept > 0 {
		fmt.Fprintf(w, "%s: %d of %d kept values moved\n", file, len(moved), kept)
	}
	list(findings, "")
	if len(findings) == 0 {
		fmt.Fprintf(w, "%s: all %d bounds hold\n", file, total)
	} else {
		fmt.Fprintf(w, "%s: %d of %d bounds do not hold\n", file, len(findings), total)
	}
	if v.record {
		err = v.keep(file)
	}
	return len(findings) > 0, err
}

// keep writes the results of the bounds into their file.
func (v *virtualReplay) keep(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := string(data)
	for _, p := range v.parts {
		if text, err = p.bounds.Record(text, p.all, p.Rows); err != nil {
			return err
		}
	}
	return cli.ReplaceFile(file, func(w io.Writer) error {
		_, err := io.Copy(w, strings.NewReader(text))
		return err
	})
}
