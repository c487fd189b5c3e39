package trace

import (
	"errors"
	"io/fs"

	"carma/cmd/carma/cli"
	"carma/configs/traces/load"
)

// readLoad reads any file with arrivals, or a trace that ships with carma. Broken entries
// are refused, or left out and reported.
func readLoad(a *cli.App, path string, skipBroken bool) (*load.Load, error) {
	f, err := open(a, path)
	if errors.Is(err, fs.ErrNotExist) {
		l, err := load.Shipped(path)
		if err != nil {
			return nil, cli.Usagef("", "%v", err)
		}
		return l, nil
	} else if err != nil {
		return nil, cli.Usagef("", "%v", err)
	}
	defer f.Close()
	l, err := load.Read(path, f, skipBroken)
	if err != nil {
		return nil, cli.Usagef("", "%s", cli.Printable(err.Error()))
	}
	if l.Broken.Count > 0 {
		a.Say("%s: left out %d of %d entries that are broken: %s", l.Name, l.Broken.Count, l.Entries, cli.Printable(l.Broken.String()))
	}
	return l, nil
}
