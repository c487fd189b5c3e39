//go:build !cgo

package cards

import (
	"context"

	"carma/cmd/carma/cli"
	"carma/runner/gpu"
)

// Open returns an error: this program cannot read the GPUs.
func Open(context.Context, Options) (gpu.Source, error) {
	return nil, &NoDriver{cli.UsageError{
		What: "this carma was built without cgo, which loads the NVIDIA driver's library",
		Hint: "build it with a C compiler in PATH (CGO_ENABLED=1 make build), or simulate: carma daemon --gpus sim:dgx-station-a100",
	}}
}
