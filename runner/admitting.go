package runner

import (
	"carma/runner/admission"
)

// newAdmission sets what takes submissions.
func (r *Runner) newAdmission() {
	r.admission = admission.New(admission.Config{
		Loop: r.loop, Records: r.records, Find: r.find, Clock: r.Clock, Numbers: r.numbers, Authz: r.authz, Control: r.control,
		Driver: r.Driver, Engine: r.engine, Images: r.images, Pull: r.pull, Estimator: r.Estimator, Source: r.GPUs, GPUs: r.gpus,
		Memory: r.hostMem, Limiter: r.limiter, Helpers: r.suites.Manager, Channels: r.channels, Mounts: r.userMounts, Host: r.host,
		Resized: r.resized, Folders: r.ownFolders, HostIPC: r.opt.MPS != nil && r.opt.MPS.HostIPC, Headroom: r.opt.Mapper.Headroom,
		Settings: func() admission.Settings {
			l := r.live()
			return admission.Settings{PerUser: l.PerUser, Fittings: l.Fittings, Bounds: l.Bounds, Probe: l.Probing.When}
		},
	})
}

// ownFolders returns the folders that carma mounts in tasks.
func (r *Runner) ownFolders() (all []string) {
	if r.opt.MPS != nil {
		all = append(all, r.opt.MPS.Groups.Dir)
	}
	if r.opt.Devices != nil {
		mounts, _ := r.opt.Devices(0, 0)
		for _, m := range mounts {
			all = append(all, m.Target)
		}
	}
	return all
}
