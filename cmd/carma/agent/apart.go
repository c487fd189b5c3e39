package agent

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
)

// Program is the name of the program that is the agent alone.
const Program = "carma-agent"

// Apart lets the command become [Program], with the same words, if that lies beside this
// program and is of the same version. Else the command runs the agent in this program,
// whose file is three times as large in a node's memory.
func Apart(a *cli.App, cmd *cobra.Command) *cobra.Command {
	here := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if self, err := os.Executable(); err == nil {
			if path := filepath.Join(filepath.Dir(self), Program); versionOf(cmd.Context(), path) == a.Version {
				_ = syscall.Exec(path, os.Args, os.Environ()) // comes back only if it cannot be run
			}
		}
		return here(cmd, args)
	}
	return cmd
}

// versionOf asks a program [Program] for its version; empty: it is not there, or says none.
func versionOf(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
