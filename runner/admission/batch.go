package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"carma/containers"
	"carma/containers/option"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/helpers"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/taskkind"
	"carma/runner/textcheck"
)

// submissionBatch is a submission that is not in the state yet.
type submissionBatch struct {
	who   request.Caller
	group string
	tasks []*candidate
}

// SubmitAll submits either all tasks, numbered in order, or none. When it returns without
// an error, the tasks are durable.
func (a *Controller) SubmitAll(ctx context.Context, who request.Caller, s api.Submission) (api.SubmittedAll, error) {
	in, warn, err := a.take(ctx, who, s)
	if err != nil {
		return api.SubmittedAll{}, err
	}
	var recs []*record.Record
	if err := a.cfg.Loop.Do(ctx, a.addition(s, in, pull.CredentialsFrom(ctx), &recs)); err != nil {
		return api.SubmittedAll{}, err
	}
	answer := api.SubmittedAll{Group: recs[0].Group, Warnings: warn}
	for _, rec := range recs {
		answer.Tasks = append(answer.Tasks, api.Submitted{ID: int64(rec.ID()), Name: rec.Name})
	}
	return answer, nil
}

// SubmitJob submits a Job of a cluster as a task of its owner. carma does not change the pod of
// a Job.
func (a *Controller) SubmitJob(ctx context.Context, who request.Caller, s api.Submit, id containers.JobID) (*record.Record, []string, error) {
	c, lines, err := a.prepare(ctx, who, s)
	if err != nil {
		return nil, nil, err
	}
	c.rec.Job = &record.Job{JobID: id}
	c.rec.Says.Unbuffered = false
	var recs []*record.Record
	sub := api.Submission{Tasks: []api.Submit{s}}
	if err := a.cfg.Loop.Do(ctx, a.addition(sub, &submissionBatch{who: who, tasks: []*candidate{c}}, nil, &recs)); err != nil {
		return nil, nil, err
	}
	return recs[0], lines, nil
}

// addition returns the change that adds the prepared tasks of a submission. recs receives
// their records.
func (a *Controller) addition(s api.Submission, in *submissionBatch, by pull.Credentials, recs *[]*record.Record) *loop.Change {
	return &loop.Change{
		Fresh: slices.ContainsFunc(s.Tasks, func(t api.Submit) bool { return len(t.After) > 0 }),
		Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
			events, all, err := a.plan(now, in)
			if err != nil {
				return nil, nil, err
			}
			for _, rec := range all {
				a.names[rec.Name] = true
			}
			if all[0].Group != "" {
				a.names[all[0].Group] = true
			}
			a.cfg.Numbers.take(len(all))
			a.keepCredentials(by, all) // before any of the tasks is launched
			*recs = all
			return events, all, nil
		},
	}
}

// take prepares all tasks of a submission. It returns each warning once.
func (a *Controller) take(ctx context.Context, who request.Caller, s api.Submission) (*submissionBatch, []string, error) {
	if len(s.Tasks) == 0 || len(s.Tasks) > api.MaxTasks {
		return nil, nil, request.Errorf(422, "%d tasks in one submission; 1 to %d are possible", len(s.Tasks), api.MaxTasks)
	}
	if err := textcheck.Name("--group", s.Group); err != nil {
		return nil, nil, err
	}
	in := &submissionBatch{who: who, group: s.Group}
	var warn []string
	mayMount, onHost := a.cfg.Mounts.Check(ctx, who), a.cfg.Host.Check(ctx, who)
	place := a.cfg.Authz.Placement(ctx, who, a.cfg.Find.Referred)
	for i, t := range s.Tasks {
		if err := place(&t); err != nil {
			return nil, nil, inTask(s, i, err)
		}
		if t.Bare() && t.Check() == nil && textcheck.Submit(t) == nil { // prepare refuses the others
			var err error
			if t, err = onHost(t); err != nil {
				return nil, nil, inTask(s, i, err)
			}
		}
		c, w, err := a.prepare(ctx, who, t)
		if err == nil {
			err = mayMount(t.Mounts)
		}
		if err == nil {
			err = a.checkFiles(who, s.Group, &t)
		}
		if err != nil {
			return nil, nil, inTask(s, i, err)
		}
		in.tasks = append(in.tasks, c)
		for _, text := range w {
			if !slices.Contains(warn, text) {
				warn = append(warn, text)
			}
		}
	}
	return in, warn, nil
}

// inTask adds to an error the task that it is about: the number if there are several
// tasks, and the name in the file if the task comes from a file.
func inTask(s api.Submission, i int, err error) error {
	refused, ok := err.(*request.Error)
	if !ok || len(s.Tasks) == 1 && s.Tasks[i].Part == "" {
		return err
	}
	what := "task " + strconv.Itoa(i+1)
	if part := s.Tasks[i].Part; part != "" {
		what = part
	}
	return request.Errorf(refused.Status, "%s: %s", what, refused.Text)
}

// plan numbers and names the tasks of a submission and returns the events that
// submit them. It changes only the candidates' records. Only the loop calls it.
func (a *Controller) plan(now units.Instant, in *submissionBatch) ([]model.Event, []*record.Record, error) {
	if _, coming := a.cfg.Source.(gpu.Coming); coming && a.cfg.Loop.State().NumGPUs() == 0 {
		return nil, nil, request.Errorf(503, "the cluster has no GPUs now, and none that it had has a task; kubectl get resourceslices shows them; submit again when there are some")
	}
	if a.cfg.Loop.State().NumGPUs() == 0 { // the GPUs that a first start has found are not stored yet
		return nil, nil, loop.ErrFull
	}
	if err := a.room(in); err != nil {
		return nil, nil, err
	}
	first := a.cfg.Numbers.Next()
	group, err := a.groupName(in, first)
	if err != nil {
		return nil, nil, err
	}
	p := batchPlan{Controller: a, parts: map[string][]model.TaskID{}, size: map[string]int{}, names: map[string]bool{}}
	for _, c := range in.tasks {
		p.size[c.rec.Submit.Part]++
	}
	var events []model.Event
	var recs []*record.Record
	for i, c := range in.tasks {
		rec, part := c.rec, c.rec.Submit.Part
		id := first + model.TaskID(i)
		rec.Group, rec.GroupID = group, 0
		if group != "" {
			rec.GroupID = first
		}
		p.parts[part] = append(p.parts[part], id)
		if rec.Name, err = p.name(rec, id); err != nil {
			return nil, nil, err
		}
		req, err := p.request(c, id)
		if err != nil {
			return nil, nil, err
		}
		rec.Submit.Env = append(placeInArray(rec, p.parts[part][0]), rec.Submit.Env...)
		rec.Task = model.Task{Request: req, Phase: model.Estimating, Submitted: now}
		events = append(events, model.TaskSubmitted{At: now, Request: req})
		if bound, err := p.asked(now, req, c); err != nil {
			return nil, nil, err
		} else if bound != nil {
			events = append(events, bound)
		}
		if !a.wantsProbe(rec, c.est) {
			events = append(events, model.Estimated{At: now, Task: id, Estimate: Booking(c.est), Expected: c.expected})
		}
		recs = append(recs, rec)
	}
	return events, recs, nil
}

// groupName returns the name of the group that a submission creates, or "" if it needs
// none. first is the number of its first task.
func (a *Controller) groupName(in *submissionBatch, first model.TaskID) (string, error) {
	only := in.tasks[0].rec.Submit
	if in.group == "" && len(in.tasks) == 1 && only.Part == "" && only.Array == nil {
		return "", nil
	}
	name := in.group
	if name == "" {
		name = defaultName(&only) + "-" + first.String()
	}
	return name, a.nameFree("--group", name)
}

// nameFree refuses a name that an unfinished task or group has.
func (a *Controller) nameFree(option, name string) error {
	if id := a.cfg.Records.UnfinishedNamed(name); id != 0 {
		return request.Errorf(409, "%s: task %d is called %s already and is not finished; choose another name, or `carma stop %s` first", option, id, name, name)
	}
	if a.cfg.Records.OpenGroup(name) {
		return request.Errorf(409, "%s: a group is called %s already and is not finished; choose another name, or `carma stop --group %s` first", option, name, name)
	}
	if a.names[name] {
		return request.Errorf(409, "%s: another task is being called %s; choose another name", option, name)
	}
	return nil
}

// batchPlan numbers the tasks of one submission.
type batchPlan struct {
	*Controller
	parts        map[string][]model.TaskID // planned so far
	size         map[string]int            // tasks of each part in all
	names        map[string]bool           // taken in this submission
	dependencies int
}

// name returns a task's name: as requested, else the group's with a distinguishing suffix.
func (p *batchPlan) name(rec *record.Record, id model.TaskID) (string, error) {
	sub := rec.Submit
	name := sub.Name
	switch {
	case rec.Job != nil:
		name = rec.Job.String()
	case name != "":
	case rec.Group == "":
		name = defaultName(&sub) + "-" + id.String()
	default:
		name = rec.Group
		if sub.Part != "" {
			name += "-" + sub.Part
		}
		if n := p.size[sub.Part]; sub.Array != nil && sub.Array.Count == n {
			name += "-" + strconv.Itoa(sub.Array.Index)
		} else if n > 1 {
			name += "-" + strconv.Itoa(len(p.parts[sub.Part]))
		} else if sub.Part == "" {
			name += "-1"
		}
	}
	if p.names[name] || name == rec.Group {
		return "", request.Errorf(409, "--name: two tasks of this submission, or one and their group, are called %s; choose other names", name)
	}
	p.names[name] = true
	return name, p.nameFree("--name", name)
}

// request returns the mapper's request for a task.
func (p *batchPlan) request(c *candidate, id model.TaskID) (model.Request, error) {
	rec, sub := c.rec, c.rec.Submit
	req := model.Request{
		ID: id, User: rec.User, Account: sub.Account, Namespace: sub.Namespace, Kind: taskkind.Kind(rec), Family: taskkind.Family(&sub), Program: taskkind.Program(rec), Batch: taskkind.BatchSize(rec), Image: cmp.Or(rec.ImageID, sub.Source()),
		GPUs: sub.GPUs, NoGPU: sub.NoGPU, Priority: priorities[sub.Priority],
		Exclusive: sub.Exclusive, Retries: sub.Retries, TimeLimit: sub.TimeLimit, Slot: sub.Slot,
		Terminal: sub.TTY, IdleStop: sub.IdleStop,
		Delay: sub.Delay, Parallel: sub.Parallel, Group: rec.Group,
	}
	req.HostMem, req.HostReserve, req.CPUs = machine.Asked(&sub)
	if rec.Group != "" && sub.Part != "" {
		req.Group += "/" + sub.Part
	}
	var err error
	if req.After, err = p.after(sub, id); err != nil {
		return req, err
	}
	if p.dependencies += len(req.After); p.dependencies > api.MaxDependencies {
		return req, request.Errorf(422, "--after: the tasks of this submission depend on each other %d times or more, at most %d are possible; put a task between that all follow", p.dependencies, api.MaxDependencies)
	}
	c.est, err = p.possible(req, c.est)
	rec.Detail = c.est.Detail
	return req, err
}

// placeInArray returns the variables with a task's group and its place in an array. first
// is the first task of that array.
func placeInArray(rec *record.Record, first model.TaskID) []string {
	var env []string
	if rec.Group != "" {
		env = append(env, "CARMA_GROUP="+rec.Group)
	}
	if a := rec.Submit.Array; a != nil {
		env = append(env, "CARMA_ARRAY_ID="+first.String(), fmt.Sprintf("CARMA_ARRAY_INDEX=%d", a.Index),
			fmt.Sprintf("CARMA_ARRAY_COUNT=%d", a.Count), fmt.Sprintf("CARMA_ARRAY_MIN=%d", a.Min), fmt.Sprintf("CARMA_ARRAY_MAX=%d", a.Max))
	}
	return env
}

// keepCredentials keeps the submitter's credentials for the tasks whose image could not be
// looked up.
func (a *Controller) keepCredentials(by pull.Credentials, recs []*record.Record) {
	var waiting []int64
	for _, rec := range recs {
		if rec.ImageID == "" && !rec.Submit.Bare() {
			waiting = append(waiting, int64(rec.ID()))
		}
	}
	if len(waiting) == 0 {
		return
	}
	a.cfg.Pull.Keep(waiting, by, func(task int64) bool {
		rec, _ := a.cfg.Records.Get(model.TaskID(task))
		return rec != nil && !rec.Task.Phase.Finished()
	})
}

// checkFiles refuses a task if its mounts collide with a file that it gets from its suite.
func (a *Controller) checkFiles(who request.Caller, group string, s *api.Submit) error {
	if group == "" || s.Part == "" {
		return nil
	}
	_, files := a.cfg.Helpers.Join(helpers.Owner{UID: who.UID, GID: who.GID, Name: who.Name}, group, s.Part, "")
	c := helpers.Covered{}
	for _, m := range s.Mounts {
		c.Mounts = append(c.Mounts, m.Target)
	}
	for _, t := range option.Each(s.Tmpfs, option.ParseTmpfs) {
		c.Tmpfs = append(c.Tmpfs, t.Target)
	}
	if err := helpers.CheckFiles(files, c); err != nil {
		return request.Errorf(422, "%v", err)
	}
	return nil
}
