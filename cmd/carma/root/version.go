package root

import (
	"errors"
	"runtime"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/server"
	"carma/runner/api"
)

func versionCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version [flags]",
		GroupID: cli.GroupOther,
		Short:   "Print the versions of the client and of the daemon",
		Args:    cli.NoArgs,
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		info, err := client.Info(cmd.Context())
		var none *api.NoDaemonError
		if err != nil && !errors.As(err, &none) {
			return err
		}
		if *asJSON {
			v := struct {
				Client string `json:"client"`
				Go     string `json:"go"`
				Daemon string `json:"daemon,omitempty"`
				Engine string `json:"engine,omitempty"`
			}{a.Version, runtime.Version(), info.Version, info.Engine}
			return a.JSON(v)
		}
		a.Printf("client  %s (%s, %s/%s)\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		if none != nil {
			a.Printf("daemon  none at %s\n", none.Socket)
			return nil
		}
		a.Printf("daemon  %s\nengine  %s\n", info.Version, server.Engine(&info))
		return nil
	}
	return cmd
}
