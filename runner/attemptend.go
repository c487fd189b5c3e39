package runner

import (
	"maps"

	"carma/containers"
	"carma/runner/api"
)

// attemptEnd holds the observations about the end of an attempt, for people. The journal
// keeps it in the task's record.
type attemptEnd struct {
	// Remark is a note for people beside the outcome, or empty.
	Remark    string               `json:"remark,omitempty"`
	Witnesses []containers.Witness `json:"witnesses,omitempty"`
}

// withEnd returns the record with the end of an attempt, if something was observed.
func (r *Record) withEnd(attempt int, end *attemptEnd) *Record {
	if end == nil {
		return r
	}
	n := *r
	n.Ends = maps.Clone(r.Ends)
	if n.Ends == nil {
		n.Ends = map[int]*attemptEnd{}
	}
	n.Ends[attempt] = end
	return &n
}

// withoutQuotes returns the end without the lines of the output.
func (e *attemptEnd) withoutQuotes() *attemptEnd {
	hidden := attemptEnd{Remark: e.Remark}
	for _, w := range e.Witnesses {
		if w.Source == containers.SourceOutput {
			w.Text = ""
		}
		hidden.Witnesses = append(hidden.Witnesses, w)
	}
	return &hidden
}

// viewEnd adds the observations about an attempt's end to its view.
func (r *Record) viewEnd(v *api.Attempt) {
	end := r.Ends[v.N]
	if end == nil {
		return
	}
	v.Remark = end.Remark
	for _, w := range end.Witnesses {
		v.Witnesses = append(v.Witnesses, api.Witness{Source: string(w.Source), Says: w.Says, Strength: w.Strength, Rule: w.Rule, Text: w.Text})
	}
}
