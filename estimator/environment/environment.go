// Package environment describes the software and hardware on which a training's memory
// depends in addition to its model: the memory of a process before its first tensor, the
// workspaces of the libraries, the allocator's settings. The constants are fitted to
// measurements or probed. Each names its source, and no estimator has constants of its
// own.
package environment

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"carma/estimator/step"
	"carma/internal/suggest"
)

//go:embed environments.json
var shipped []byte

// Default is the environment of a server without a configured one: the newest measured
// software.
const Default = "a100-2025-09"

// Environment is one generation of software on one kind of GPU.
type Environment struct {
	step.Environment
	// About describes the environment. Fitted names the source of the constants.
	About  string `json:"about"`
	Fitted string `json:"fitted"`
	// NCCL is the memory of a communicator on each GPU of a training on several GPUs, or 0
	// if not measured.
	NCCL int64 `json:"nccl,omitempty"`
	// GPUs lists parts of the names of GPU models. A machine with such GPUs uses this
	// environment by default. If GPUs is empty, only machines that configure the environment
	// use it.
	GPUs []string `json:"gpus,omitempty"`
}

var all = sync.OnceValue(func() []Environment {
	es, err := Read(strings.NewReader(string(shipped)))
	if err != nil {
		panic("environments.json: " + err.Error()) // a test ensures that this cannot happen
	}
	return es
})

// Names returns the shipped environments, sorted.
func Names() []string {
	var names []string
	for _, e := range all() {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// Named returns a shipped environment. An empty name stands for [Default].
func Named(name string) (Environment, error) {
	if name == "" {
		name = Default
	}
	for _, e := range all() {
		if e.Name == name {
			return e, nil
		}
	}
	return Environment{}, fmt.Errorf("unknown environment %q; nearest is %s", name, suggest.Names(name, Names(), 1)[0])
}

// For returns the name of the environment for a machine with these GPU models, as the
// driver names them. It returns empty if no environment fits all GPUs.
func For(models []string) string {
	if len(models) == 0 {
		return ""
	}
	for _, e := range all() {
		stands := func(model string) bool {
			return slices.ContainsFunc(e.GPUs, func(part string) bool { return strings.Contains(model, part) })
		}
		if !slices.ContainsFunc(models, func(m string) bool { return !stands(m) }) {
			return e.Name
		}
	}
	return ""
}

// Read reads a list of environments. It refuses values that no machine has.
func Read(r io.Reader) ([]Environment, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var es []Environment
	if err := d.Decode(&es); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, e := range es {
		err := e.check()
		if err == nil && seen[e.Name] {
			err = errors.New("there is another of that name")
		}
		if err != nil {
			return nil, fmt.Errorf("environment %d (%s): %w", i+1, e.Name, err)
		}
		seen[e.Name] = true
	}
	return es, nil
}

// check refuses values that no machine has.
func (e *Environment) check() error {
	const terabyte = 1 << 40
	for name, n := range map[string]int64{
		"capacity": e.Capacity, "context": e.Context, "conv_context": e.ConvContext, "cublas": e.CuBLAS, "workspace_limit": e.WorkspaceLimit,
		"nccl": e.NCCL, "allocator limit": e.Allocator.Limit, "allocator max split": e.Allocator.MaxSplit, "allocator roundup divisions": e.Allocator.RoundupDivisions,
	} {
		if n < 0 || n > terabyte {
			return fmt.Errorf("%s is %d bytes; it must be from 0 to 2^40", name, n)
		}
	}
	for name, x := range map[string]float64{"forward": e.Forward, "data": e.Data, "filter": e.Filter, "weight": e.Weight} {
		if !(x >= 0 && x <= 100) {
			return fmt.Errorf("%s is %g; it must be from 0 to 100", name, x)
		}
	}
	if e.Capacity > 0 && e.Capacity <= e.Context+e.ConvContext {
		return fmt.Errorf("its capacity, %d bytes, is not above its context", e.Capacity)
	}
	if e.Name == "" {
		return errors.New("it has no name")
	}
	return nil
}
