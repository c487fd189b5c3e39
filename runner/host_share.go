package runner

import "carma/mapper/model"

// hostSample returns the machine's part of a sample, or nil if nothing is allocated.
func (r *Runner) hostSample() []model.HostSample {
	if _, books := r.live().Bounds.Host(r.opt.SetSpeed != nil); !books {
		return nil
	}
	return []model.HostSample{r.hostMem.Sample()}
}
