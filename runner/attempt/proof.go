package attempt

import (
	"context"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/mps"
	"carma/runner/record"
)

// Proof is an attempt that is not run: its container proves how attempts are limited.
type Proof struct{ builder *builder }

// NewProof returns the proof of a launch. It is a client of MPS if shares is set and MPS
// works.
func NewProof(deps *Deps, rec *record.Record, launch model.Launch, shares bool) *Proof {
	c := newCore(deps, rec, launch)
	if shares && deps.Sharing.Why(time.Now()) == "" {
		c.mps = deps.Sharing.Attempt(rec, launch)
	}
	return &Proof{&builder{c}}
}

// Spec returns the specification of the container.
func (p *Proof) Spec() (containers.Spec, error) {
	spec, _, err := p.builder.spec()
	return spec, err
}

// Group returns the MPS server of the proof, or nil if it is no client of MPS.
func (p *Proof) Group() *mps.Group { return p.builder.mps.Group() }

// Limit limits the GPU memory of a container, and returns how.
func (p *Proof) Limit(ctx context.Context, id string) (string, error) {
	return p.builder.memory.Prove(ctx, id)
}
