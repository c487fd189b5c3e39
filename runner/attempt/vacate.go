package attempt

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"carma/containers"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/suspend"
	"carma/runner/suspend/leave"
)

// VacateFolder returns an attempt's folder on the machine.
func (d *Deps) VacateFolder(container string) leave.Folder {
	return leave.Folder(filepath.Join(d.DataDir, "leave", container))
}

// canVacate reports whether an attempt may be asked to vacate its GPUs. Its program sees
// only the GPUs that it was launched on, so it resumes on these.
func (c *core) canVacate() bool {
	o := c.deps.Suspending
	return o != nil && !o.Off && len(c.launch.Grants) > 0 && leave.Path(c.rec.Submit.Env) != "" && c.deps.Mounts.SameFiles() == nil
}

// offerEvery is the time between two checks whether a program offers to vacate.
const offerEvery = time.Second

// watchVacateOffer ticks until an attempt's program has offered to vacate. look is nil if
// the attempt cannot vacate. stop ends the ticks.
func (s *suspension) watchVacateOffer() (look <-chan time.Time, stop func()) {
	if !s.canVacate() {
		return nil, func() {}
	}
	tick := time.NewTicker(offerEvery)
	return tick.C, tick.Stop
}

// reportVacateOffer reports to the core that the program offers to vacate. It returns false if
// there is no offer yet.
func (s *suspension) reportVacateOffer() bool {
	task, attempt := s.launch.Task, s.launch.Attempt
	if !s.deps.VacateFolder(s.containerName()).Offered() {
		return false
	}
	known := false
	_ = s.deps.Loop.Look(context.Background(), func(s *mapper.State) {
		t, ok := s.Task(task)
		known = ok && t.Alive() != nil && t.Last().Leaves // an earlier daemon has reported the offer
	})
	if !known {
		s.deps.Loop.Post(loop.Fact(model.VacatesOnRequest{At: s.deps.Clock.Now(), Task: task, Attempt: attempt}))
	}
	return true
}

// mountVacate mounts the folder into an attempt's container.
func (b *builder) mountVacate(spec *containers.Spec) error {
	if !b.canVacate() {
		return nil
	}
	f := b.deps.VacateFolder(spec.Name)
	if err := f.Make(b.rec.UID, b.rec.GID); err != nil {
		return err
	}
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: string(f), Target: leave.Path(b.rec.Submit.Env)})
	return nil
}

// container returns the attempt's container in the form of package suspend.
func (s *suspension) container(id string) suspend.Container {
	name := s.containerName()
	c := suspend.FindContainer(s.deps.Processes.Root(), id, name)
	if leave.Path(s.rec.Submit.Env) != "" {
		c.Leave = string(s.deps.VacateFolder(name))
	}
	return c
}

// removeVacate removes the folder of an attempt that has ended.
func (c *core) removeVacate() {
	if leave.Path(c.rec.Submit.Env) == "" {
		return
	}
	if err := os.RemoveAll(string(c.deps.VacateFolder(c.containerName()))); err != nil {
		c.deps.Log.Warn().Err(err).Int64("task", int64(c.launch.Task)).Msg("the folder through which the task was asked to leave its GPU could not be removed; the next start does it")
	}
}

// SweepVacate removes the folders of attempts that ended while no daemon ran.
func (d *Deps) SweepVacate() {
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
