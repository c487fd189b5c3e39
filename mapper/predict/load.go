package predict

import (
	"carma/mapper/interference"
	"carma/mapper/model"
)

// RecordActivity adds the activity of a GPU to the observed load of its only task. It uses the
// scores that were valid up to now, so call it before they change.
func (pr *Predictor) RecordActivity(g *model.GPU) {
	if len(g.Residents) != 1 || !pr.SamplesShowTasks(g) || g.Coarse {
		return
	}
	r := &g.Residents[0]
	r.Observed.Add(g, max(r.Observed.Until, g.SamplesValidFrom()), pr.Now())
}

// LearnLoads sets the load of tasks on a GPU whose activity is a guess. Once the tasks on the
// GPU have not changed for a while, the expected activity of the known tasks is subtracted from
// the sampled activity, and the rest is divided equally among the other tasks. This part
// becomes their load, also for a later attempt. known lists the tasks whose load was not known
// before. attributed reports whether the sample was attributed to several tasks or to an
// unknown one.
func (pr *Predictor) LearnLoads(g *model.GPU) (known []*model.Task, attributed bool) {
	if g.SeenAt == g.ChangedAt || !pr.SamplesShowTasks(g) || g.Idle() || pr.loading(g) {
		return nil, false
	}
	g.SeenAt = g.ChangedAt
	pr.compareDeclared(g)
	if r := &g.Residents[0]; len(g.Residents) == 1 && !r.Unseen && !g.Coarse && g.SMACT > r.Load.SMACT+surprise && g.OtherProcesses == 0 {
		return pr.observed(g, r, interference.Load{SMACT: g.SMACT, SMOCC: g.SMOCC, DRAMA: g.DRAMA, Step: r.Load.Step}, SeenDoubt), false // samples do not show the step time
	}
	return pr.AttributeLoad(g), true
}

// TaskOfUnknownLoad returns a task whose activity on a GPU is not known yet, or 0.
func (pr *Predictor) TaskOfUnknownLoad(g *model.GPU) model.TaskID {
	for i := range g.Residents {
		if g.Residents[i].Unseen {
			return g.Residents[i].Task
		}
	}
	return 0
}

// surprise is the excess of SM activity over the expected one from which the samples of a task
// that is alone replace its load. Less activity than expected changes nothing, because the task
// may have paused to read data.
const surprise = 0.05

// UnknownLeast is the least SM activity assumed for a task without history, for
// the same reason.
const UnknownLeast = 0.10

// SamplesShowTasks reports whether the tasks on a GPU have been the same for so long that the
// samples show only these tasks.
func (pr *Predictor) SamplesShowTasks(g *model.GPU) bool { return pr.Now() >= g.SamplesValidFrom() }

// ObservedLoad returns the observed activity of a task that ends now on each of its GPUs.
// It returns nothing unless the task was alone on all of them for a while.
func (pr *Predictor) ObservedLoad(t *model.Task) (all []interference.Load) {
	for _, grant := range t.Current().Grants {
		g := pr.GPU(grant.GPU)
		pr.RecordActivity(g)
		r := g.Resident(t.ID)
		n := r.Observed.Seconds
		if n < AloneLeast {
			return nil
		}
		all = append(all, interference.Load{
			SMACT: r.Observed.SMACT / n, SMOCC: r.Observed.SMOCC / n, DRAMA: r.Observed.DRAMA / n,
			Step: r.Load.Step, // samples do not show the step time
		})
	}
	return all
}

// AloneLeast is the time, in seconds, for which a task must have been observed alone
// before its activity is stored in the history.
const AloneLeast = 300
