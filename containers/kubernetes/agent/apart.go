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

// Program is the file name of the program that contains only the agent.
const Program = "carma-agent"

// Apart executes [Program] if that program lies in the folder of this one and has the same
// version. Otherwise it calls [Run] in this program, which needs three times as much memory
// because its file is larger.
func Apart(version string) agent.Run {
	return func(ctx context.Context, config settings.Config, f agent.Flags, log zerolog.Logger) error {
		if self, err := os.Executable(); err == nil {
			cli.Become(ctx, version, filepath.Join(filepath.Dir(self), Program))
		}
		return Run(ctx, config, f, log)
	}
}
