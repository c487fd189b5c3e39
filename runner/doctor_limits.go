package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/limits"
	"carma/runner/record"
	"carma/runner/request"
)

// checkLimits reports for each GPU how the memory of tasks is limited, and why a stricter
// limit is not used.
func (r *Runner) checkLimits() api.Check {
	c := api.Check{Name: "GPU memory limits", Status: "ok"}
	on := map[string][]string{}
	var texts []string
	for _, d := range r.ordered() {
		id := model.GPUID(d.UUID)
		text := r.tierText(id)
		if on[text] == nil {
			texts = append(texts, text)
		}
		on[text] = append(on[text], fmt.Sprint(d.Index))
		if in, _ := r.tiers(id); in[0] == "nothing" {
			c.Status, c.Fix = "warning", "write memory-caps: growth and watchdog: relaunch, their defaults"
		}
	}
	var parts []string
	for _, text := range texts {
		parts = append(parts, fmt.Sprintf("GPU %s: %s", strings.Join(on[text], ", "), text))
	}
	c.Detail = strings.Join(parts, "; ")
	return c
}

// proveGrant is the grant of a proof's container. It allocates nothing.
const proveGrant = 256 * units.MiB

// proveLimit bounds the time of the proof on one GPU.
const proveLimit = 2 * time.Minute

// showTarget is the path of the program in the container of a proof.
const showTarget = "/.carma/show"

// Prove starts a container of image on each GPU, one after the other, like a task of who
// that shares the GPU. It compares the container's view with its grant. The program is
// carma-init, not the image's own. A missing image is a [request.Error]; a failed proof is a
// check.
func (r *Runner) Prove(ctx context.Context, who request.Caller, image string) ([]api.Check, error) {
	if r.opt.Init == "" {
		return nil, request.Errorf(409, "carma-init, the program of the proof, is not beside carma; make build")
	}
	ctx, done := r.engine.WhileAnswering(ctx)
	defer done()
	img, err := r.Driver.Image(ctx, image)
	if err != nil {
		if errors.Is(err, containers.ErrNotFound) {
			return nil, request.Errorf(404, "image %s is not on this machine; name one that is", image)
		}
		return nil, err
	}
	var out []api.Check
	rec := &record.Record{Submit: api.Submit{Image: image}, Name: "doctor", User: who.Name, UID: who.UID, GID: who.GID, ImageUser: img.User, ImageEnv: limits.Heeded(img.Env)}
	for _, d := range r.ordered() {
		c := api.Check{Name: fmt.Sprintf("proof on GPU %d", d.Index), Status: "ok"}
		one, cancel := context.WithTimeout(ctx, proveLimit)
		seen, err := r.proveOn(one, rec, model.GPUID(d.UUID))
		cancel()
		c.Detail = seen
		if err != nil {
			c.Status, c.Detail, c.Fix = "failure", err.Error(), "see the daemon's log and the line GPU memory limits"
		}
		out = append(out, c)
	}
	return append(out, r.proveSuspending(ctx, rec)...), nil
}

func (r *Runner) proveOn(ctx context.Context, rec *record.Record, gpu model.GPUID) (seen string, err error) {
	w := &worker{Runner: r, rec: rec, stop: newStopper(), launch: model.Launch{
		Attempt: 1, Grants: []model.Grant{{GPU: gpu, Memory: proveGrant}},
	}}
	w.noMPS = w.sharing.why(time.Now()) != ""
	if group := w.mpsGroup(); group != nil {
		if err := w.opt.MPS.Groups.Ensure(ctx, group); err != nil {
			return "", err
		}
	}
	spec, err := w.spec()
	if err != nil {
		return "", err
	}
	name, over := r.trial()
	defer over()
	spec.Name = name
	spec.Entrypoint, spec.Command = []string{showTarget, "show"}, nil
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: r.opt.Init, Target: showTarget, ReadOnly: true})
	id, err := r.Driver.Create(ctx, spec)
	if err != nil {
		return "", err
	}
	defer func() {
		if cause := context.Cause(ctx); errors.Is(cause, containers.ErrUnavailable) {
			err = cause
			r.side.Go(func() {
				_, _ = r.engine.Retry(r.work, func() error { r.clearLimits(r.work, id); return r.Driver.Remove(r.work, id) })
			})
			return
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveLimit)
		defer cancel()
		r.clearLimits(end, id)
		err = errors.Join(err, r.Driver.Remove(end, id))
	}()
	limit, err := w.proveLimit(ctx, id)
	if err != nil {
		return "", err
	}
	lines, err := r.output(ctx, id)
	if err != nil {
		return "", err
	}
	return w.proof(limit, lines)
}

// proveLimit limits the parked container and reads the limit back.
func (w *worker) proveLimit(ctx context.Context, id string) (string, error) {
	gpus := w.limited()
	if len(gpus) == 0 {
		return "", nil
	}
	pid, err := w.park(ctx, id)
	if err != nil {
		return "", err
	}
	k := w.opt.Limits.Keeper
	want := w.bounds(ctx, gpus)
	if err := k.Limit(ctx, id, pid, want); err != nil {
		return "", err
	}
	got, err := k.Read(ctx, id, gpus[0])
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

// output runs a created container to its end and returns its output.
func (r *Runner) output(ctx context.Context, id string) (lines []string, err error) {
	if err := r.Driver.Start(ctx, id); err != nil {
		return nil, err
	}
	exit, err := r.Driver.Wait(ctx, id)
	if err != nil {
		return nil, err
	}
	var last string
	err = r.Driver.Logs(ctx, id, time.Time{}, false, func(_ time.Time, _ containers.Stream, line []byte, partial bool) {
		if last += string(line); !partial {
			lines, last = append(lines, last), ""
		}
	})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the container of the proof ended with code %d: %s", exit.Code, strings.Join(lines, "; "))
	}
	return lines, err
}

// proof compares the output of carma-init in a container with the specification of the
// container. It returns the proven facts, in words.
func (w *worker) proof(limit string, lines []string) (string, error) {
	var env, cards []string
	smi := "nvidia-smi is not in it"
	for _, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "env":
			env = append(env, rest)
		case "gpu":
			cards = append(cards, rest)
		case "smi":
			smi = "nvidia-smi in it: " + rest
		}
	}
	given, err := w.spec()
	if err != nil {
		return "", err
	}
	for _, kv := range given.Env {
		if !slices.Contains(env, kv) {
			return "", fmt.Errorf("the container was given %s and does not see it", kv)
		}
	}
	var proven []string
	if limit != "" {
		proven = append(proven, limit)
	}
	for _, kv := range given.Env {
		key, _, _ := strings.Cut(kv, "=")
		if key == "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" || slices.Contains(limits.Heeded([]string{kv}), kv) {
			proven = append(proven, kv)
		}
	}
	if len(proven) == 0 {
		proven = []string{"nothing that limits it"}
	}
	text := "seen by a container: " + strings.Join(proven, ", ")
	if len(cards) > 0 {
		return text + fmt.Sprintf(", GPU %s MiB by nvidia-smi; not tried: allocating more than that", strings.Join(cards, " MiB, GPU ")), nil
	}
	return text + "; not proven: that the GPU heeds it (" + smi + ")", nil
}
