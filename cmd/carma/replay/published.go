package replay

import (
	"fmt"
	"slices"

	"carma/cmd/carma/cli"
	"carma/mapper/sim/study"
)

// runPublished prints carma's figures beside the published ones.
func runPublished(a *cli.App, asJSON bool) error {
	sets, err := study.PublishedSets()
	if err != nil {
		return err
	}
	c := a.Console()
	all := make([]study.ComparedSet, len(sets))
	for i, set := range sets {
		all[i], err = set.Compare(progress(c))
		c.Status("")
		if err != nil {
			return err
		}
	}
	if asJSON {
		err = a.JSON(publishedJSON(all))
	} else {
		for i := range all {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			if err = printPublished(a.Out, &all[i]); err != nil {
				break
			}
		}
	}
	if err == nil && slices.ContainsFunc(all, func(s study.ComparedSet) bool { return s.Off() }) {
		err = cli.CodeError(cli.ExitFailed)
	}
	return err
}
