package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"carma/configs"
	environments "carma/estimator/environment"
	"carma/estimator/onnx"
	"carma/mapper"
	"carma/runner/api"
)

// What a check may find.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailure = "failure"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check that carma can work here, and tell what to mend",
		Long: `Check the daemon, the container engine, the GPUs and the folders, and tell how
to mend what is wrong. Without a daemon it checks what can be seen from here.
Exits with 1 when a check fails.`,
		Args: noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, from, err := configs.Load(cmd.Flags())
		if err != nil {
			return err
		}
		client := api.NewClient(configs.ClientSocket(config, from))
		checks, err := client.Doctor(cmd.Context())
		var none *api.NoDaemonError
		switch {
		case errors.As(err, &none):
			checks = localChecks(cmd.Context(), config, none)
		case err != nil:
			return err
		}
		checks = append(checks, environmentCheck(config.Environment), runtimeCheck(onnx.Status()))
		if *asJSON {
			if err := a.json(checks); err != nil {
				return err
			}
		} else {
			fmt.Fprint(a.out, checkText(checks))
		}
		for _, c := range checks {
			if c.Status == checkFailure {
				return codeError(exitFailed)
			}
		}
		return nil
	}
	return cmd
}

// checkText lists checks. Nothing is cut off: what mends is there to be copied.
func checkText(checks []api.Check) string {
	var b strings.Builder
	name := 0
	for _, c := range checks {
		name = max(name, len(c.Name))
	}
	for _, c := range checks {
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", c.Status, name, printable(c.Name), printable(c.Detail))
		if c.Mend != "" {
			fmt.Fprintf(&b, "%-7s  %-*s  mend: %s\n", "", name, "", printable(c.Mend))
		}
	}
	return b.String()
}

// localChecks are those that need no daemon.
func localChecks(ctx context.Context, config configs.Config, none *api.NoDaemonError) []api.Check {
	return []api.Check{
		socketCheck(none), dataCheck(config.DataDir), engineCheck(ctx, config), driverCheck(config.GPUs),
	}
}

func socketCheck(none *api.NoDaemonError) api.Check {
	c := api.Check{Name: "daemon", Status: checkFailure, Detail: none.Error(), Mend: "carma daemon"}
	switch {
	case errors.Is(none, fs.ErrPermission):
		c.Detail, c.Mend = "no permission to use "+none.Socket, "ask its owner for access, or run your own: carma daemon --socket ..."
	case errors.Is(none, syscall.ECONNREFUSED):
		c.Detail += ": the socket is there, but nobody listens"
	}
	return c
}

// environmentCheck names the software and GPU that estimates assume.
func environmentCheck(name string) api.Check {
	env, err := environments.Named(name)
	if err != nil {
		return api.Check{Name: "environment", Status: checkFailure, Detail: err.Error(), Mend: "correct environment: in the configuration"}
	}
	return api.Check{Name: "environment", Status: checkOK, Detail: fmt.Sprintf("%s: %s; context %s", env.Name, env.About, mapper.Bytes(env.Context+env.ConvContext))}
}

// runtimeCheck never fails: only the learned estimator needs the library. It
// is what is found from here; a daemon with another environment may differ.
func runtimeCheck(s onnx.State) api.Check {
	c := api.Check{Name: "ONNX Runtime", Status: checkOK, Detail: strings.TrimSpace(s.Version + " " + s.Path)}
	if !s.On {
		c.Detail = "off: " + s.Why
	}
	return c
}

// leastFree is how much room the journal and the output should have.
const leastFree = mapper.GiB

func dataCheck(dir string) api.Check {
	c := api.Check{Name: "data folder", Status: checkOK}
	there := dir // the deepest part that exists
	for {
		if _, err := os.Stat(there); err == nil || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	const writeAndEnter = 0o3
	if err := syscall.Access(there, writeAndEnter); err != nil {
		c.Status, c.Detail = checkFailure, fmt.Sprintf("%s cannot be written: %v", there, err)
		c.Mend = "run carma daemon as root, or with --data-dir in a folder of yours"
		return c
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(there, &stat); err != nil {
		c.Status, c.Detail = checkWarning, fmt.Sprintf("%s: free space unknown: %v", dir, err)
		return c
	}
	free := mapper.Bytes(stat.Bavail) * mapper.Bytes(stat.Bsize)
	c.Detail = fmt.Sprintf("%s, %s free", dir, free)
	if there != dir {
		c.Detail += ", will be made"
	}
	if free < leastFree {
		c.Status, c.Mend = checkWarning, "make room: submissions are refused when it is full"
	}
	return c
}

func driverCheck(source string) api.Check {
	c := api.Check{Name: "GPUs", Status: checkOK}
	line, err := os.ReadFile("/proc/driver/nvidia/version")
	first, _, _ := strings.Cut(string(line), "\n")
	switch {
	case strings.HasPrefix(source, "sim:"):
		c.Detail = "simulated: " + strings.TrimPrefix(source, "sim:")
	case err == nil:
		c.Detail = strings.Join(strings.Fields(first), " ")
	case source != "auto":
		c.Status, c.Detail = checkFailure, "no NVIDIA driver is loaded"
		c.Mend = "install the driver, or simulate: carma daemon --gpus sim:dgx-station-a100"
	default:
		c.Status, c.Detail = checkWarning, "no NVIDIA driver is loaded; the daemon would simulate GPUs"
		c.Mend = "install the driver, or say so: carma daemon --gpus sim:dgx-station-a100"
	}
	return c
}

func engineCheck(ctx context.Context, config configs.Config) api.Check {
	c := api.Check{Name: "engine", Status: checkOK}
	if config.Driver == "containerd" {
		return containerdCheck(ctx, config)
	}
	host := cmp.Or(config.DockerHost, os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock")
	version, err := engineVersion(ctx, host)
	if err == nil {
		c.Detail = fmt.Sprintf("docker %s at %s", version, host)
		return c
	}
	c.Status, c.Detail = checkFailure, fmt.Sprintf("docker does not answer at %s: %v", host, err)
	c.Mend = "start it: systemctl start docker (or: dockerd &); to install it: apt-get install docker.io"
	if errors.Is(err, fs.ErrPermission) {
		c.Detail = "no permission to use docker at " + host
		c.Mend = "sudo usermod -aG docker $USER, then log in again"
	}
	return c
}

func containerdCheck(ctx context.Context, config configs.Config) api.Check {
	c := api.Check{Name: "engine", Status: checkOK}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	driver, err := openContainerd(config)
	if err != nil {
		c.Status, c.Detail, c.Mend = checkFailure, err.Error(), "run carma as root"
		return c
	}
	defer func() { _ = driver.Close() }()
	engine, err := driver.Ping(ctx)
	if err != nil {
		c.Status, c.Detail = checkFailure, err.Error()
		c.Mend = "start it: systemctl start containerd (or: containerd &); to install it: apt-get install containerd runc"
		return c
	}
	c.Detail = "containerd " + engine.Version
	if len(engine.Notes) > 0 {
		c.Status, c.Detail = checkWarning, c.Detail+"; "+strings.Join(engine.Notes, "; ")
	}
	return c
}

// engineVersion asks a Docker engine for its version.
func engineVersion(ctx context.Context, host string) (string, error) {
	network, address, ok := strings.Cut(host, "://")
	if !ok || network != "unix" && network != "tcp" {
		return "", errors.New("only unix:// and tcp:// can be checked from here")
	}
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/version", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			return "", op.Err
		}
		return "", err
	}
	defer resp.Body.Close()
	var v struct{ Version string }
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil || v.Version == "" {
		return "", fmt.Errorf("it answers %s, which is not Docker's", resp.Status)
	}
	return v.Version, nil
}
