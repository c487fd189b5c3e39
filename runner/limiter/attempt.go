package limiter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/limits"
	"carma/runner/record"
)

// Attempt is the limiter of one attempt.
type Attempt struct {
	*Limiter
	rec    *record.Record
	launch model.Launch
	grants func() []model.Grant // on the GPUs where it is now
}

// Attempt returns the limiter of a launch. grants returns the grants on the GPUs where the
// attempt is now.
func (l *Limiter) Attempt(rec *record.Record, launch model.Launch, grants func() []model.Grant) *Attempt {
	return &Attempt{Limiter: l, rec: rec, launch: launch, grants: grants}
}

func (a *Attempt) key() gpu.AttemptKey {
	return gpu.AttemptKey{Task: a.launch.Task, Attempt: a.launch.Attempt}
}

// Limited reports whether the driver limits the attempt.
func (a *Attempt) Limited() bool { return len(a.limited()) > 0 }

// limited returns the GPUs on which the driver limits the attempt.
func (a *Attempt) limited() (gpus []string) {
	if !a.opt.driver() || !a.support.OK() || a.rec.Task.NextExclusive {
		return nil
	}
	for _, g := range a.grants() {
		if a.deps.GPUs.Devices()[g.GPU].Parent == "" {
			gpus = append(gpus, string(g.GPU))
		}
	}
	return gpus
}

// Bursts reports whether the attempt may use more than its grant. If so,
// nothing else may stop it at the grant.
func (a *Attempt) Bursts() bool { return a.opt.Burst && a.Limited() }

// Limit parks the container of an attempt and has the driver limit it. Under
// ModeAuto a limit that cannot be set is only logged.
func (a *Attempt) Limit(ctx context.Context, id string) error {
	gpus := a.limited()
	if len(gpus) == 0 {
		return nil
	}
	pid, err := a.park(ctx, id)
	if err == nil && pid != 0 {
		err = a.Keep(ctx, id, pid)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.Is(err, containers.ErrInvalid), errors.Is(err, containers.ErrNotFound), errors.Is(err, containers.ErrUnavailable):
		return err
	case a.opt.Mode == ModeDriver:
		return limitFault(err)
	}
	a.deps.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("the driver does not limit the task's GPU memory")
	return nil
}

// limitFault returns the start fault of a task that must not run without a limit that the
// driver could not set.
func limitFault(err error) error {
	text := "its GPU memory could not be limited: " + err.Error()
	return &containers.StartFault{
		Scope: containers.ScopeGPU, Code: "memory-limit", Cause: text,
		Remedy: "carma doctor tells more; with memory-limit: auto tasks run without", Text: text,
	}
}

func (a *Attempt) park(ctx context.Context, id string) (pid int, err error) {
	h, _ := engine.As[containers.Parker](a.deps.Driver) // the driver is a Parker, else limited would be empty
	_, err = a.deps.Engine.Retry(ctx, func() error {
		return engine.Within(ctx, engine.StartLimit, "park container", func(ctx context.Context) (err error) { pid, err = h.Park(ctx, id); return err })
	})
	return pid, err
}

// bounds returns the limits of an attempt on gpus. The hard limit is its grant
// and, if it may burst, the free memory. The soft limit is its grant, if the
// engine leaves time to clear it.
func (a *Attempt) bounds(ctx context.Context, gpus []string) map[string]limits.Limit {
	var room map[model.GPUID]units.Bytes
	if a.opt.Burst {
		room = a.deps.Free(ctx)
	}
	out := map[string]limits.Limit{}
	for _, g := range a.grants() {
		if !slices.Contains(gpus, string(g.GPU)) {
			continue
		}
		l := limits.Limit{Hard: int64(g.Memory + max(0, room[g.GPU]))}
		if a.guarantees {
			l.Soft = int64(g.Memory)
		}
		out[string(g.GPU)] = l
	}
	return out
}

// Keep has the driver limit a container to its bounds. pid is a process of the container.
func (a *Attempt) Keep(ctx context.Context, id string, pid int) error {
	gpus := a.limited()
	if len(gpus) == 0 {
		return nil
	}
	bounds := a.bounds(ctx, gpus)
	a.deps.Soft.SetSoftLimits(id, a.key(), bounds)
	return a.opt.Keeper.Limit(ctx, id, pid, bounds)
}

// Recall finds the soft limits that an earlier daemon set for the container of an
// attempt.
func (a *Attempt) Recall(id string) {
	if !a.opt.driver() {
		return
	}
	if l := a.opt.Keeper.Noted(id); l != nil {
		a.deps.Soft.SetSoftLimits(id, a.key(), l)
	}
}

// Prove limits a parked container and compares the limit that the driver then reports. It
// returns what was found, or "" if the driver does not limit the attempt.
func (a *Attempt) Prove(ctx context.Context, id string) (string, error) {
	gpus := a.limited()
	if len(gpus) == 0 {
		return "", nil
	}
	pid, err := a.park(ctx, id)
	if err != nil {
		return "", err
	}
	want := a.bounds(ctx, gpus)
	if err := a.opt.Keeper.Limit(ctx, id, pid, want); err != nil {
		return "", err
	}
	got, err := a.opt.Keeper.Read(ctx, id, gpus[0])
	if err != nil {
		return "", err
	}
	if got != want[gpus[0]] {
		return "", fmt.Errorf("the driver was told %s and says %s", limitText(want[gpus[0]]), limitText(got))
	}
	return fmt.Sprintf("driver limit set while it was parked and read back (%s)", limitText(got)), nil
}

func limitText(l limits.Limit) string {
	hard := "none"
	if l.Hard > 0 {
		hard = units.Bytes(l.Hard).String()
	}
	return fmt.Sprintf("soft %s, hard %s", units.Bytes(l.Soft), hard)
}

// Variables returns the variables that limit the frameworks of a task that may share
// its GPUs. Variables that the task or its image sets are left out.
func (a *Attempt) Variables() []string {
	if !a.Grows() || a.rec.Task.NextExclusive || len(a.launch.Grants) == 0 {
		return nil
	}
	have := slices.Concat(a.rec.ImageEnv, a.rec.Submit.Env)
	add := limits.Growth(have)
	if a.opt.Caps != CapsFractions {
		return add
	}
	most := 0.0 // one variable serves all GPUs, so that no GPU's fraction is less than its grant
	for _, g := range a.launch.Grants {
		most = max(most, limits.Fraction(int64(g.Memory), int64(a.opt.Context), int64(a.deps.GPUs.Capacity(g.GPU))))
	}
	return append(add, limits.Fractions(have, most)...)
}
