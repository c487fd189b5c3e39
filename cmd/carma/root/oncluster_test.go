package root

import "carma/runner/api"

// cluster fills a daemon with the state of a cluster on which two tasks run: one of carma run,
// one of a Job.
func (d *fakeDaemon) cluster() {
	d.busy()
	d.info.Driver = "kubernetes"
	add := func(id int64, name, phase string) {
		t := api.Task{ID: id, Name: name, User: "ann", Phase: phase, Submit: api.Submit{Namespace: "lab"}}
		if phase == "running" {
			t.Attempts = []api.Attempt{{N: 1, Container: "carma-0f03d8fd-30-1"}}
		}
		d.tasks = append(d.tasks, &fakeTask{Task: t})
	}
	add(30, "notebook", "running")
	add(31, "lab/train", "running")
	add(32, "later", "queued")
}
