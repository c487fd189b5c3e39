package runner

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"carma/containers"
	"carma/mapper"
)

// containerName is fixed by the daemon, the task and the attempt, so that the
// engine itself refuses to run an attempt twice.
func (r *Runner) containerName(task mapper.TaskID, attempt int) string {
	return fmt.Sprintf("carma-%s-%d-%d", r.instance, task, attempt)
}

// identity are the labels that a container of this attempt is found by.
func (w *worker) identity() map[string]string {
	return map[string]string{
		LabelInstance: w.instance,
		LabelTask:     w.launch.Task.String(),
		LabelAttempt:  strconv.Itoa(w.launch.Attempt),
	}
}

// spec is the container of an attempt. It depends only on the record and the
// launch: a restarted daemon asks for the same one.
func (w *worker) spec() containers.Spec {
	sub := w.rec.Submit
	uuids := make([]string, len(w.launch.Grants))
	var grant mapper.Bytes
	for i, g := range w.launch.Grants {
		uuids[i] = string(g.GPU)
		grant = max(grant, g.Memory)
	}
	labels := w.identity()
	labels[LabelGrant] = strconv.FormatInt(int64(grant), 10)
	labels[LabelGPUs] = strings.Join(uuids, ",")
	labels[LabelName] = w.rec.Name
	labels[LabelUser] = w.rec.User
	spec := containers.Spec{
		Name:       w.containerName(w.launch.Task, w.launch.Attempt),
		Image:      sub.Image,
		Labels:     labels,
		Entrypoint: sub.Entrypoint,
		Command:    sub.Command,
		WorkDir:    sub.WorkDir,
		ShmSize:    sub.ShmSize,
		GPUs:       uuids,
		Attach:     w.opt.Attach,
		Env: append([]string{
			"CARMA_TASK=" + w.launch.Task.String(),
			"CARMA_ATTEMPT=" + strconv.Itoa(w.launch.Attempt),
			"CARMA_GRANT_BYTES=" + strconv.FormatInt(int64(grant), 10),
		}, sub.Env...),
		NoNewPrivileges: true,
	}
	spec.User = sub.User
	if w.rec.UID != 0 {
		spec.User = fmt.Sprintf("%d:%d", w.rec.UID, w.rec.GID)
	}
	for _, m := range sub.Mounts {
		spec.Mounts = append(spec.Mounts, containers.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	if w.opt.Devices != nil {
		mounts, env := w.opt.Devices(w.launch.Task, w.launch.Attempt)
		spec.Mounts = append(spec.Mounts, mounts...)
		spec.Env = append(spec.Env, env...)
	}
	return spec
}

// grace is the time a task gets between the stop signal and the kill.
func (r *Runner) grace(task mapper.TaskID) time.Duration {
	if g, ok := r.graces.Load(task); ok {
		return g.(time.Duration)
	}
	if rec, _ := r.book.get(task); rec != nil && rec.Submit.StopGrace > 0 {
		return rec.Submit.StopGrace
	}
	return r.opt.StopGrace
}
