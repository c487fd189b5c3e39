package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"carma/containers"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/request"
	"carma/runner/suspend"
	"carma/runner/suspend/leave"
)

// leaveVariable is the name of an environment variable. It contains the path, in the container,
// of the folder through which the daemon asks a task to vacate its GPUs; see package leave.
const leaveVariable = "CARMA_LEAVE"

// leavePath returns the value of the variable; the last one counts.
func leavePath(env []string) (path string) {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, leaveVariable+"="); ok {
			path = value
		}
	}
	return path
}

// checkLeave refuses paths that cannot be a folder in the container.
func checkLeave(s api.Submit) error {
	path := leavePath(s.Env)
	switch {
	case path == "":
		return nil
	case s.Bare():
		return request.Errorf(400, "%s is for tasks with an image; leave it out", leaveVariable)
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		return request.Errorf(400, "%s=%s: it is where the container gets a folder; write an absolute path that is free there, for example /run/carma-leave", leaveVariable, path)
	}
	for _, m := range s.Mounts {
		if m.Target == path {
			return request.Errorf(400, "%s=%s: -v mounts another folder there; name a path that is free", leaveVariable, path)
		}
	}
	return nil
}

// VacateFolder returns an attempt's folder on the machine.
func (d *attemptDeps) VacateFolder(container string) leave.Folder {
	return leave.Folder(filepath.Join(d.DataDir, "leave", container))
}

// canVacate reports whether an attempt may be asked to vacate its GPUs. Its program sees
// only the GPUs that it was launched on, so it resumes on these.
func (w *worker) canVacate() bool {
	o := w.deps.Suspending
	return o != nil && !o.Off && len(w.launch.Grants) > 0 && leavePath(w.rec.Submit.Env) != "" && w.deps.Mounts.SameFiles() == nil
}

// offerEvery is the time between two checks whether a program offers to vacate.
const offerEvery = time.Second

// watchVacateOffer ticks until an attempt's program has offered to vacate. look is nil if
// the attempt cannot vacate. stop ends the ticks.
func (w *worker) watchVacateOffer() (look <-chan time.Time, stop func()) {
	if !w.canVacate() {
		return nil, func() {}
	}
	tick := time.NewTicker(offerEvery)
	return tick.C, tick.Stop
}

// reportVacateOffer reports to the core that the program offers to vacate. It returns false if
// there is no offer yet.
func (w *worker) reportVacateOffer() bool {
	task, attempt := w.launch.Task, w.launch.Attempt
	if !w.deps.VacateFolder(w.containerName()).Offered() {
		return false
	}
	known := false
	_ = w.deps.Loop.Look(context.Background(), func(s *mapper.State) {
		t, ok := s.Task(task)
		known = ok && t.Alive() != nil && t.Last().Leaves // an earlier daemon has reported the offer
	})
	if !known {
		w.deps.Loop.Post(loop.Fact(model.VacatesOnRequest{At: w.deps.Clock.Now(), Task: task, Attempt: attempt}))
	}
	return true
}

// mountVacate mounts the folder into an attempt's container.
func (w *worker) mountVacate(spec *containers.Spec) error {
	if !w.canVacate() {
		return nil
	}
	f := w.deps.VacateFolder(spec.Name)
	if err := f.Make(w.rec.UID, w.rec.GID); err != nil {
		return err
	}
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: string(f), Target: leavePath(w.rec.Submit.Env)})
	return nil
}

// container returns the attempt's container in the form of package suspend.
func (w *worker) container(id string) suspend.Container {
	name := w.containerName()
	c := suspend.FindContainer(w.deps.Processes.Root(), id, name)
	if leavePath(w.rec.Submit.Env) != "" {
		c.Leave = string(w.deps.VacateFolder(name))
	}
	return c
}

// removeVacate removes the folder of an attempt that has ended.
func (w *worker) removeVacate() {
	if leavePath(w.rec.Submit.Env) == "" {
		return
	}
	if err := os.RemoveAll(string(w.deps.VacateFolder(w.containerName()))); err != nil {
		w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the folder through which the task was asked to leave its GPU could not be removed; the next start does it")
	}
}

// SweepVacate removes the folders of attempts that ended while no daemon ran.
func (d *attemptDeps) SweepVacate() {
	alive := map[string]bool{}
	for _, t := range d.Loop.State().Tasks() {
		if a := t.Alive(); a != nil {
			alive[label.ContainerName(d.Instance, t.ID, a.N)] = true
		}
	}
	dir := filepath.Join(d.DataDir, "leave")
	list, _ := os.ReadDir(dir) // the folder usually does not exist
	for _, e := range list {
		if !alive[e.Name()] {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // the next start tries it again
		}
	}
}
