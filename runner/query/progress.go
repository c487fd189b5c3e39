package query

import (
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/runner/api"
	"carma/runner/energy"
	"carma/runner/progress"
	"carma/runner/record"
	"carma/runner/throughput"
)

// Sources of progress beside the forms of output.
const (
	SourcePrediction = "prediction" // the output shows no progress
	SourcePrivate    = "private"    // the caller may not read the output
)

// Sources of an expected end.
const (
	etaOutput     = "output"
	etaPrediction = "prediction"
)

// Sources of a slowdown.
const (
	slowMeasured  = "measured"
	slowPredicted = "predicted"
)

// viewProgress adds the progress of a running task to its view.
func (r *Tasks) viewProgress(v *api.Task, t *model.Task, g predict.SpeedView) {
	now := r.c.Clock.Now()
	out := &api.Progress{Source: SourcePrediction, Slowdown: r.viewSlowdown(g)}
	v.Progress = out
	p, params, told := r.c.Followers.Progress(t)
	if params != (progress.Parameters{}) {
		v.Params, v.Trainable = params.Total, params.Trainable
	}
	if told {
		out.Source, out.Doubt, out.Unit, out.Seen = string(p.Source), string(p.Doubt), p.Unit, p.Seen
		out.Done, out.Total, out.Epoch, out.Epochs, out.Share = p.Done, p.Total, p.Epoch, p.Epochs, p.Share
		out.Rate, out.RateError = throughput.Round(p.Rate, throughput.Digits), throughput.Round(p.RateError, 2)
		out.Throughput, out.PerSecond = p.Throughput, p.PerSecond
	}
	switch {
	case told && p.Trusted && p.Remaining >= 0:
		out.ETA, out.ETABasis = now.Add(p.Remaining).Time(), etaOutput
	case g.Ends:
		out.ETA, out.ETABasis = now.Add(g.Left).Time(), etaPrediction
	}
}

// WithoutOutput returns progress without the parts from the task's output.
func WithoutOutput(p *api.Progress) *api.Progress {
	if p == nil {
		return nil
	}
	hidden := &api.Progress{Source: SourcePrivate}
	if p.Source == SourcePrediction {
		hidden.ETA, hidden.ETABasis = p.ETA, p.ETABasis
	}
	if p.Slowdown != nil {
		s := *p.Slowdown
		s.Value, s.Basis, s.Error = s.Predicted, slowPredicted, 0
		hidden.Slowdown = &s
	}
	return hidden
}

// viewSlowdown returns the slowdown by a task's neighbours, or nil if the task has no
// neighbours.
func (r *Tasks) viewSlowdown(g predict.SpeedView) *api.Slowdown {
	if len(g.Beside) == 0 {
		return nil
	}
	s := &api.Slowdown{Value: energy.Hundredths(g.Predicted), Basis: slowPredicted, Predicted: energy.Hundredths(g.Predicted)}
	if g.Measured > 0 {
		s.Value, s.Basis, s.Error = energy.Hundredths(g.Measured), slowMeasured, energy.Hundredths(g.Measured*g.Error)
	}
	for _, id := range g.Beside {
		ref := api.TaskRef{ID: int64(id)}
		if rec, _ := r.c.Find.Records.Get(id); rec != nil {
			ref.Name = rec.Name
		}
		s.Beside = append(s.Beside, ref)
	}
	return s
}

// paramsOf returns the numbers of parameters that a task's earlier output named, or
// zeros.
func paramsOf(rec *record.Record) (total, trainable float64) {
	if rec.Params == nil {
		return 0, 0
	}
	return rec.Params.Total, rec.Params.Trainable
}
