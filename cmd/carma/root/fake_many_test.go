package root

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"carma/runner/api"
)

// submitAll accepts several tasks, which run at the same time.
func (d *fakeDaemon) submitAll(w http.ResponseWriter, r *http.Request) {
	var s api.Submission
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		problem(w, http.StatusBadRequest, "%v", err)
		return
	}
	for _, t := range s.Tasks {
		if t.Image == "missing" {
			problem(w, http.StatusUnprocessableEntity, "%s: no image missing on this machine", t.Part)
			return
		}
	}
	answer := api.SubmittedAll{Group: cmp.Or(s.Group, "ok-1")}
	for i, sub := range s.Tasks {
		sub.Name = cmp.Or(sub.Name, fmt.Sprintf("%s-%d", answer.Group, i+1))
		t, _ := d.take(sub, answer.Group)
		d.players.Go(func() { d.play(t) })
		answer.Tasks = append(answer.Tasks, api.Submitted{ID: t.ID, Name: t.Name})
	}
	d.answer(w, answer)
}

// preview answers that all tasks would start except the first.
func (d *fakeDaemon) preview(w http.ResponseWriter, r *http.Request) {
	var s api.Submission
	_ = json.NewDecoder(r.Body).Decode(&s)
	p := api.Preview{Group: s.Group, Warnings: []string{"the image has no labels"}}
	for i, t := range s.Tasks {
		v := api.PreviewTask{
			Name: fmt.Sprintf("%s-%d", s.Group, i+1), Image: t.Image, Command: t.Command, GPUCount: max(1, t.GPUs), Need: t.Mem,
			Estimate: api.Estimate{Method: "declared", Memory: t.Mem}, GPUs: []api.GPURef{{Index: i}},
		}
		if i == 0 {
			v.GPUs, v.Waits = nil, "it waits for task 17 to succeed"
		}
		p.Tasks = append(p.Tasks, v)
	}
	d.answer(w, p)
}

func (d *fakeDaemon) of(group string) []api.Task {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := []api.Task{}
	for _, t := range d.tasks {
		if t.Group == group {
			all = append(all, t.Task)
		}
	}
	return all
}

func (d *fakeDaemon) group(w http.ResponseWriter, r *http.Request) {
	all := d.of(r.PathValue("group"))
	if len(all) == 0 {
		problem(w, http.StatusNotFound, "no group %s; `carma ps -a` lists all tasks", r.PathValue("group"))
		return
	}
	d.answer(w, all)
}

func (d *fakeDaemon) stopGroup(w http.ResponseWriter, r *http.Request) {
	answer := api.Stopped{Group: r.PathValue("group")}
	d.update(func() {
		for _, t := range d.tasks {
			if t.Group == answer.Group && !t.Finished() {
				t.stops++
				answer.Tasks = append(answer.Tasks, t.ID)
			}
		}
	})
	d.answer(w, answer)
}
