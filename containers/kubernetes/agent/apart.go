package agent

import (
	"context"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"carma/cmd/carma/agent"
	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
)

// Program is the name of the program that is the agent alone.
const Program = "carma-agent"

// Apart is [Run] in [Program], if that lies beside this program and is of the same version.
// Else the agent runs in this program, whose file is three times as large in a node's memory.
func Apart(version string) agent.Run {
	return func(ctx context.Context, config settings.Config, f agent.Flags, log zerolog.Logger) error {
		if self, err := os.Executable(); err == nil {
			cli.Become(ctx, version, filepath.Join(filepath.Dir(self), Program))
		}
		return Run(ctx, config, f, log)
	}
}
