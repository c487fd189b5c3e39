package main

import (
	"errors"
	"io/fs"

	"carma/configs/traces/load"
)

// readLoad reads any file that has arrivals, or a trace that ships with carma.
// Broken entries are refused, or left out and told of.
func (a *app) readLoad(path string, skipBroken bool) (*load.Load, error) {
	f, err := a.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		l, err := load.Shipped(path)
		if err != nil {
			return nil, usagef("", "%v", err)
		}
		return l, nil
	} else if err != nil {
		return nil, usagef("", "%v", err)
	}
	defer f.Close()
	l, err := load.Read(path, f, skipBroken)
	if err != nil {
		return nil, usagef("", "%s", printable(err.Error()))
	}
	if l.Broken.Count > 0 {
		a.say("%s: left out %d of %d entries that are broken: %s", l.Name, l.Broken.Count, l.Entries, printable(l.Broken.String()))
	}
	return l, nil
}
