package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

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
	tasks []*admission
}

// SubmitAll submits either all tasks, numbered in order, or none. When it returns without
// an error, the tasks are durable.
func (r *Runner) SubmitAll(ctx context.Context, who request.Caller, s api.Submission) (api.SubmittedAll, error) {
	in, warn, err := r.take(ctx, who, s)
	if err != nil {
		return api.SubmittedAll{}, err
	}
	var recs []*record.Record
	if err := r.loop.Do(ctx, r.addition(s, in, pull.CredentialsFrom(ctx), &recs)); err != nil {
		return api.SubmittedAll{}, err
	}
	answer := api.SubmittedAll{Group: recs[0].Group, Warnings: warn}
	for _, rec := range recs {
		answer.Tasks = append(answer.Tasks, api.Submitted{ID: int64(rec.ID()), Name: rec.Name})
	}
	return answer, nil
}

// addition returns the change that adds the prepared tasks of a submission. recs receives
// their records.
func (r *Runner) addition(s api.Submission, in *submissionBatch, by pull.Credentials, recs *[]*record.Record) *loop.Change {
	return &loop.Change{
		Fresh: slices.ContainsFunc(s.Tasks, func(t api.Submit) bool { return len(t.After) > 0 }),
		Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
			events, all, err := r.plan(now, in)
			if err != nil {
				return nil, nil, err
			}
			for _, rec := range all {
				r.names[rec.Name] = true
			}
			if all[0].Group != "" {
				r.names[all[0].Group] = true
			}
			r.nextID += model.TaskID(len(all))
			r.keepCredentials(by, all) // before any of the tasks is launched
			*recs = all
			return events, all, nil
		},
	}
}

// take prepares all tasks of a submission. It returns each warning once.
func (r *Runner) take(ctx context.Context, who request.Caller, s api.Submission) (*submissionBatch, []string, error) {
	if len(s.Tasks) == 0 || len(s.Tasks) > api.MaxTasks {
		return nil, nil, request.Errorf(422, "%d tasks in one submission; 1 to %d are possible", len(s.Tasks), api.MaxTasks)
	}
	if err := textcheck.Name("--group", s.Group); err != nil {
		return nil, nil, err
	}
	in := &submissionBatch{who: who, group: s.Group}
	var warn []string
	mayMount, onHost := r.userMounts.Check(ctx, who), r.host.Check(ctx, who)
	place := r.authz.Placement(ctx, who, r.find.Referred)
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
		c, w, err := r.prepare(ctx, who, t)
		if err == nil {
			err = mayMount(t.Mounts)
		}
		if err == nil {
			err = r.checkFiles(who, s.Group, &t)
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
func (r *Runner) plan(now units.Instant, in *submissionBatch) ([]model.Event, []*record.Record, error) {
	if _, coming := r.GPUs.(gpu.Coming); coming && r.loop.State().NumGPUs() == 0 {
		return nil, nil, request.Errorf(503, "the cluster has no GPUs now, and none that it had has a task; kubectl get resourceslices shows them; submit again when there are some")
	}
	if r.loop.State().NumGPUs() == 0 { // the GPUs that a first start has found are not stored yet
		return nil, nil, loop.ErrFull
	}
	if err := r.room(in); err != nil {
		return nil, nil, err
	}
	first := r.nextID
	group, err := r.groupName(in, first)
	if err != nil {
		return nil, nil, err
	}
	p := batchPlan{Runner: r, parts: map[string][]model.TaskID{}, size: map[string]int{}, names: map[string]bool{}}
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
		if !r.wantsProbe(rec, c.est) {
			events = append(events, model.Estimated{At: now, Task: id, Estimate: booking(c.est), Expected: c.expected})
		}
		recs = append(recs, rec)
	}
	return events, recs, nil
}

// groupName returns the name of the group that a submission creates, or "" if it needs
// none. first is the number of its first task.
func (r *Runner) groupName(in *submissionBatch, first model.TaskID) (string, error) {
	only := in.tasks[0].rec.Submit
	if in.group == "" && len(in.tasks) == 1 && only.Part == "" && only.Array == nil {
		return "", nil
	}
	name := in.group
	if name == "" {
		name = defaultName(&only) + "-" + first.String()
	}
	return name, r.nameFree("--group", name)
}

// nameFree refuses a name that an unfinished task or group has.
func (r *Runner) nameFree(option, name string) error {
	if id := r.records.UnfinishedNamed(name); id != 0 {
		return request.Errorf(409, "%s: task %d is called %s already and is not finished; choose another name, or `carma stop %s` first", option, id, name, name)
	}
	if r.records.OpenGroup(name) {
		return request.Errorf(409, "%s: a group is called %s already and is not finished; choose another name, or `carma stop --group %s` first", option, name, name)
	}
	if r.names[name] {
		return request.Errorf(409, "%s: another task is being called %s; choose another name", option, name)
	}
	return nil
}

// batchPlan numbers the tasks of one submission.
type batchPlan struct {
	*Runner
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
func (p *batchPlan) request(c *admission, id model.TaskID) (model.Request, error) {
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
func (r *Runner) keepCredentials(by pull.Credentials, recs []*record.Record) {
	var waiting []int64
	for _, rec := range recs {
		if rec.ImageID == "" && !rec.Submit.Bare() {
			waiting = append(waiting, int64(rec.ID()))
		}
	}
	if len(waiting) == 0 {
		return
	}
	r.pull.Keep(waiting, by, func(task int64) bool {
		rec, _ := r.records.Get(model.TaskID(task))
		return rec != nil && !rec.Task.Phase.Finished()
	})
}

// checkFiles refuses a task if its mounts collide with a file that it gets from its suite.
func (r *Runner) checkFiles(who request.Caller, group string, s *api.Submit) error {
	if group == "" || s.Part == "" {
		return nil
	}
	_, files := r.helpers.Join(ownerOf(who), group, s.Part, "")
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
