package runner

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/attempt"
	"carma/runner/deviceaccess"
	"carma/runner/doctor"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/sharing"
	"carma/runner/suspend"
)

// newDoctor sets what checks and proves the daemon's parts.
func (r *Runner) newDoctor() {
	c := doctor.Config{
		Driver: r.Driver, Engine: r.engine, Source: r.GPUs, Monitor: r.monitor, Journal: r.Journal, Clock: r.Clock, Look: r.loop.Look,
		DataDir: r.opt.DataDir, MountDir: r.opt.MountDir, Simulated: r.opt.SetSpeed != nil, Unchecked: r.opt.DeviceAccess == nil,
	}
	if m := r.opt.MPS; m != nil {
		c.MPS, c.AutoMPS = m.Groups, m.Auto
	}
	r.doctor = doctor.New(c)
	r.prover = doctor.NewProver(r.work, &r.side, doctor.ProverConfig{
		Driver: r.Driver, Engine: r.engine, Trials: r.trials, Attempts: proofs{r}, Clock: r.Clock, Log: r.Log, Look: r.loop.Look,
		Init: r.opt.Init, Simulated: r.opt.SetSpeed != nil, Suspending: r.opt.Suspending, Support: r.suspending, Calibrate: r.opt.Calibrate,
	})
}

// Doctor checks everything the daemon depends on.
func (r *Runner) Doctor(ctx context.Context) []api.Check { return r.doctor.Check(ctx, r.facts) }

// facts returns what only the daemon knows about the things that doctor checks.
func (r *Runner) facts(ctx context.Context) doctor.Facts {
	f := doctor.Facts{
		GPUs: r.doctorGPUs(), Elsewhere: r.live().Bounds.Elsewhere, AllowedMounts: r.live().AllowedMounts, Near: r.userMounts.SameFiles(),
		Output: r.keeping.Doctor(), Messages: r.channels.Check(),
	}
	f.Attach, f.AttachWhy, f.AttachErr = r.attaching.Mode()
	f.Checked, f.Damage = r.checked.result()
	f.Problems, _ = r.trouble.Now()
	f.NoMPS = cmp.Or(r.opt.NoMPS, r.sharing.Why(time.Now()))
	_ = r.loop.Look(ctx, func(s *mapper.State) {
		for _, t := range s.Tasks() {
			if a := t.Current(); a != nil && a.Devices != nil {
				f.Lost = append(f.Lost, fmt.Sprintf("task %d: %s", t.ID, deviceaccess.Text(a.Devices, r.gpus.Text)))
			}
		}
	})
	return f
}

// doctorGPUs returns the GPUs by index, with what the daemon decided about them.
func (r *Runner) doctorGPUs() []doctor.GPU {
	var out []doctor.GPU
	for _, d := range r.gpus.Ordered() {
		of := doctor.GPU{Device: d, Limits: r.limiter.TierText(model.GPUID(d.UUID))}
		of.Reading, of.Read = r.monitor.Reading(d.UUID)
		in, _ := r.limiter.Tiers(model.GPUID(d.UUID))
		of.Unlimited = in[0] == "nothing"
		of.Shared, of.NoMPS = r.sharing.Of(d)
		of.Suspend, of.SuspendFix = r.suspending.Text(d, r.sharing.ByMPS(of.Shared), r.owners.Root())
		out = append(out, of)
	}
	return out
}

// Prove proves the limits of GPU memory and suspending, in containers of image.
func (r *Runner) Prove(ctx context.Context, who request.Caller, image string) ([]api.Check, error) {
	return r.prover.Prove(ctx, who, image, r.doctorGPUs)
}

// Calibrate measures the GPU memory of a process beside its tensors, in a container of
// image.
func (r *Runner) Calibrate(ctx context.Context, who request.Caller, image string) (api.Calibration, error) {
	return r.prover.Calibrate(ctx, who, image, r.doctorGPUs())
}

// proofs makes the attempts of proofs.
type proofs struct{ r *Runner }

func (p proofs) Attempt(rec *record.Record, launch model.Launch, shares bool) doctor.Attempt {
	return proof{attempt.NewProof(p.r.attemptDeps, rec, launch, shares), p.r.opt.MPS}
}

func (p proofs) Unlimit(ctx context.Context, container string) { p.r.limiter.Clear(ctx, container) }

func (p proofs) Container(names ...string) suspend.Container {
	return suspend.FindContainer(p.r.owners.Root(), names...)
}

// proof is the attempt of a proof.
type proof struct {
	*attempt.Proof
	mps *sharing.MPS
}

func (p proof) Share(ctx context.Context) error {
	if group := p.Group(); group != nil {
		return p.mps.Groups.Ensure(ctx, group)
	}
	return nil
}
