package runner

import (
	"time"

	"carma/containers"
	"carma/runner/attempt"
	"carma/runner/machine"
	"carma/runner/record"
)

// setAttemptDeps sets what the attempts share.
func (r *Runner) setAttemptDeps() {
	r.attemptDeps = &attempt.Deps{
		Driver: r.Driver, Engine: r.engine, Source: r.GPUs, Clock: r.Clock, Log: r.Log, Logs: r.Logs,
		Loop: r.loop, Records: r.records, Monitor: r.monitor, Energy: r.energy,
		GPUs: r.gpus, Attachment: r.attaching, Access: r.access, Processes: r.owners, Ports: r.ports, Memory: r.hostMem,
		Limiter: r.limiter, Sharing: r.sharing, Puller: r.pull, Images: r.images, Mounts: r.userMounts, Host: r.host, Places: r.places, Helpers: r.suites.Manager,
		Consoles: r.consoles, Followers: r.followers, Output: r.keeping,
		Reconciled: r.reconciler.Done, Running: &r.running, Settings: attemptSettings{r},
		Instance: r.instance, DataDir: r.opt.DataDir, Attach: r.opt.Attach, NearCPUs: r.opt.NearCPUs,
		SampleEvery: r.opt.SampleEvery, Suspending: r.opt.Suspending, Devices: r.opt.Devices, Owner: r.opt.Owner,
	}
}

// attemptSettings implements [attempt.Settings].
type attemptSettings struct{ r *Runner }

func (s attemptSettings) Bounds() machine.Bounds { return s.r.live().Bounds }

func (s attemptSettings) OOMTexts() []string { return s.r.live().OOMTexts }

func (s attemptSettings) Grace(rec *record.Record) time.Duration { return s.r.grace(rec) }

func (s attemptSettings) Options(rec *record.Record) (containers.ContainerOptions, error) {
	return s.r.admission.ContainerOptions(s.r.users(rec.UID, rec.GID), rec.Submit)
}
