package command

import (
	"slices"
	"strings"

	"carma/estimator/shell"
)

// feeders lists programs whose failure in a pipeline needs no warning.
var feeders = strings.Fields("echo printf yes cat zcat gzip gunzip ls find seq head tail curl wget tar true : grep sed awk sort date env nvidia-smi")

// pipes records the pipelines that hide a failure: their exit status is the exit status
// of the last part, even if a program before it fails.
func (r *reader) pipes(all []shell.Pipe) {
	for _, p := range all {
		if p.Failing {
			continue
		}
		for i, c := range p.Commands {
			if i == len(p.Commands)-1 || len(c.Words) == 0 {
				continue
			}
			if name := c.Name(); !slices.Contains(feeders, name) && c.Sure {
				r.Pipes = append(r.Pipes, p.Text)
				break
			}
		}
	}
}
