package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/engine"
	"carma/runner/limits"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/suspend"
	"carma/runner/suspend/support"
	"carma/runner/trial"

	"github.com/rs/zerolog"
)

// Attempt is the attempt of a task that a proof simulates.
type Attempt interface {
	// Share starts what the attempt needs to share its GPU.
	Share(ctx context.Context) error
	// Spec returns the specification of its container.
	Spec() (containers.Spec, error)
	// Limit limits the GPU memory of its parked container, reads the limit back, and
	// describes it. The text is empty if it has no such limit.
	Limit(ctx context.Context, container string) (text string, err error)
}

// Attempts makes attempts as tasks have them.
type Attempts interface {
	// Attempt returns an attempt of a task. shares is set if it may be a client of MPS.
	Attempt(rec *record.Record, launch model.Launch, shares bool) Attempt
	// Unlimit removes the limits of a container's GPU memory.
	Unlimit(ctx context.Context, container string)
	// Container returns the container with one of names, with its processes.
	Container(names ...string) suspend.Container
}

// ProverConfig has the parts of the daemon that a [Prover] works with.
type ProverConfig struct {
	Driver    containers.Driver
	Engine    *engine.Health
	Trials    *trial.Trials
	Attempts  Attempts
	Clock     *clock.Clock
	Log       zerolog.Logger
	Look      Look
	Init      string // path of the program carma-init, or empty if it is missing
	Simulated bool   // the GPUs are simulated
	// Suspending has the settings of suspending, or is nil. Support says where it works.
	Suspending *support.Options
	Support    *support.Support
	// Calibrate makes the machine's own environment, or is nil if none is made.
	Calibrate Calibrating
}

// Prover proves what the daemon says about GPUs, by containers.
type Prover struct {
	ProverConfig
	work context.Context // ends when the daemon stops
	left *sync.WaitGroup // goroutines that remove containers until work ends
}

// NewProver returns a prover for a daemon whose work ends with ctx. left counts what it
// leaves to be done until then.
func NewProver(ctx context.Context, left *sync.WaitGroup, c ProverConfig) *Prover {
	return &Prover{ProverConfig: c, work: ctx, left: left}
}

// proveGrant is the grant of a proof's container. It allocates nothing.
const proveGrant = 256 * units.MiB

// proveLimit bounds the time of the proof on one GPU.
const proveLimit = 2 * time.Minute

// showTarget is the path of the program in the container of a proof.
const showTarget = "/.carma/show"

// Prove starts a container of image on each GPU, one after the other, like a task of who
// that shares the GPU. It compares the container's view with its grant. The program is
// carma-init, not the image's own. gpus returns the GPUs as they are now. A missing image is a [request.Error]; a failed proof is a
// check.
func (p *Prover) Prove(ctx context.Context, who request.Caller, image string, gpus func() []GPU) ([]api.Check, error) {
	if p.Init == "" {
		return nil, request.Errorf(409, "carma-init, the program of the proof, is not beside carma; make build")
	}
	ctx, done := p.Engine.WhileAnswering(ctx)
	defer done()
	img, err := p.Driver.Image(ctx, image)
	if err != nil {
		if errors.Is(err, containers.ErrNotFound) {
			return nil, request.Errorf(404, "image %s is not on this machine; name one that is", image)
		}
		return nil, err
	}
	var out []api.Check
	rec := &record.Record{Submit: api.Submit{Image: image}, Name: "doctor", User: who.Name, UID: who.UID, GID: who.GID, ImageUser: img.User, ImageEnv: limits.Heeded(img.Env)}
	for _, d := range gpus() {
		c := api.Check{Name: fmt.Sprintf("proof on GPU %d", d.Index), Status: "ok"}
		one, cancel := context.WithTimeout(ctx, proveLimit)
		seen, err := p.proveOn(one, rec, model.GPUID(d.UUID))
		cancel()
		c.Detail = seen
		if err != nil {
			c.Status, c.Detail, c.Fix = "failure", err.Error(), "see the daemon's log and the line GPU memory limits"
		}
		out = append(out, c)
	}
	return append(out, p.proveSuspending(ctx, rec, gpus())...), nil
}

func (p *Prover) proveOn(ctx context.Context, rec *record.Record, gpu model.GPUID) (seen string, err error) {
	attempt := p.Attempts.Attempt(rec, model.Launch{Attempt: 1, Grants: []model.Grant{{GPU: gpu, Memory: proveGrant}}}, true)
	if err := attempt.Share(ctx); err != nil {
		return "", err
	}
	spec, err := attempt.Spec()
	if err != nil {
		return "", err
	}
	name, over := p.Trials.Name("doctor")
	defer over()
	spec.Name = name
	spec.Entrypoint, spec.Command = []string{showTarget, "show"}, nil
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: p.Init, Target: showTarget, ReadOnly: true})
	id, err := p.Driver.Create(ctx, spec)
	if err != nil {
		return "", err
	}
	defer func() {
		if cause := context.Cause(ctx); errors.Is(cause, containers.ErrUnavailable) {
			err = cause
			p.left.Go(func() {
				_, _ = p.Engine.Retry(p.work, func() error { p.Attempts.Unlimit(p.work, id); return p.Driver.Remove(p.work, id) })
			})
			return
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveLimit)
		defer cancel()
		p.Attempts.Unlimit(end, id)
		err = errors.Join(err, p.Driver.Remove(end, id))
	}()
	limit, err := attempt.Limit(ctx, id)
	if err != nil {
		return "", err
	}
	lines, err := p.Trials.Run(ctx, id)
	if err != nil {
		return "", err
	}
	return proof(spec.Env, limit, lines)
}

// proof compares the output of carma-init in a container with the variables that the
// container was given. It returns the proven facts, in words.
func proof(given []string, limit string, lines []string) (string, error) {
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
	for _, kv := range given {
		if !slices.Contains(env, kv) {
			return "", fmt.Errorf("the container was given %s and does not see it", kv)
		}
	}
	var proven []string
	if limit != "" {
		proven = append(proven, limit)
	}
	for _, kv := range given {
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
