//go:build !cgo

package daemon

import (
	"context"

	"github.com/rs/zerolog"

	"carma/cmd/carma/cli"
	"carma/configs"
	"carma/configs/servers"
	"carma/runner"
	"carma/runner/gpu"
)

func openNVML(context.Context, []string, configs.Config, *runner.Options, zerolog.Logger) (gpu.Source, error) {
	return nil, &noDriverError{cli.UsageError{
		What: "this carma was built without cgo, which loads the NVIDIA driver's library",
		Hint: "build it with a C compiler in PATH (CGO_ENABLED=1 make build), or simulate: carma daemon --gpus sim:" + servers.Default,
	}}
}
