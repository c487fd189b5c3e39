package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"carma/mapper/units"

	"github.com/spf13/cobra"

	"carma/runner/api"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version [flags]",
		Short: "Print the versions of the client and of the daemon",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.client(cmd)
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
			}{version, runtime.Version(), info.Version, info.Engine}
			return a.json(v)
		}
		a.printf("client  %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		if none != nil {
			a.printf("daemon  none at %s\n", none.Socket)
			return nil
		}
		a.printf("daemon  %s\nengine  %s\n", info.Version, engine(&info))
		return nil
	}
	return cmd
}

func (a *app) infoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "info [flags]",
		Short: "Describe the daemon",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.json(info)
		}
		gpus := info.Source
		if info.Simulated {
			gpus += ", simulated, speed " + strconv.FormatFloat(info.Speed, 'g', -1, 64)
		}
		for _, line := range [][2]string{
			{"version", info.Version}, {"process", strconv.Itoa(info.PID)}, {"socket", client.Socket()}, {"data", info.DataDir},
			{"GPUs", gpus}, {"engine", engine(&info)}, {"policy", info.Policy},
			{"tasks", taskCounts(&info)}, {"output", outputLine(&info)},
			{"time", info.Now.Format("2006-01-02 15:04:05 MST")},
		} {
			if line[1] != "" {
				a.printf("%-8s %s\n", line[0], line[1])
			}
		}
		for _, x := range info.Trouble {
			if x.Code != "down" { // that is in the engine's line
				a.printf("%-8s %s\n", "trouble", printable(x.String()))
			}
		}
		return nil
	}
	return cmd
}

func engine(info *api.Info) string {
	if info.EngineDown != "" {
		return info.Driver + ": down: " + printable(info.EngineDown)
	}
	return strings.TrimSpace(info.Driver + " " + info.Engine)
}

// outputLine is how much room output takes, and what is kept of finished tasks.
func outputLine(info *api.Info) string {
	o := info.Output
	if o == nil {
		return ""
	}
	s := fmt.Sprintf("%s of at most %s in %s, %d finished tasks kept", units.Bytes(o.Bytes), units.Bytes(o.Total), o.Dir, o.Finished)
	if o.Trouble != "" {
		s += "; cannot be kept now: " + printable(o.Trouble)
	}
	return s
}

// taskCounts is how many tasks there are of each sort.
func taskCounts(info *api.Info) string {
	s := fmt.Sprintf("%d running, %d queued", info.Running, info.Queued)
	if info.Held > 0 {
		s += fmt.Sprintf(", %d held or estimated", info.Held)
	}
	return s
}
