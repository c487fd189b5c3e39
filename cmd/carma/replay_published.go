package main

import (
	"fmt"
	"slices"

	"carma/mapper/sim/study"
)

// replayPublished prints ours beside what was published.
func (a *app) replayPublished(asJSON bool) error {
	sets, err := study.PublishedSets()
	if err != nil {
		return err
	}
	c := a.console()
	all := make([]study.ComparedSet, len(sets))
	for i, set := range sets {
		all[i], err = set.Compare(replayProgress(c))
		c.status("")
		if err != nil {
			return err
		}
	}
	if asJSON {
		err = a.json(publishedJSON(all))
	} else {
		for i := range all {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			if err = printPublished(a.out, &all[i]); err != nil {
				break
			}
		}
	}
	if err == nil && slices.ContainsFunc(all, func(s study.ComparedSet) bool { return s.Off() }) {
		err = codeError(exitFailed)
	}
	return err
}
