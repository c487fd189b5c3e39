// Package doctor contains the command carma doctor: the daemon's checks, or without a
// daemon the checks that this process can do.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/engine"
	"carma/cmd/carma/settings"
	"carma/containers"
	environments "carma/estimator/environment"
	"carma/estimator/onnx"
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/verify"

	"github.com/spf13/cobra"
)

// The results of a check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailure = "failure"
)

// Command returns the command carma doctor.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "doctor [flags]",
		GroupID: cli.GroupServer,
		Short:   "Check that carma can work here, and print a fix for each problem",
		Long: `Check the daemon, the container engine, the GPUs and the folders, and print a
fix for each problem. Without a daemon it checks what it can by itself.
It starts containers only with --prove and --calibrate. The image must be on
this machine; the program that runs in it is carma's own. --prove also suspends
and resumes a small CUDA program on each idle GPU, where tasks can be suspended.

--calibrate takes about a minute, an idle GPU and an image with PyTorch. It
measures what a process takes of a GPU beside its tensors (CUDA context,
cuBLAS, cuDNN, NCCL), and memory is estimated for that from then on. It is for
admins.

Exits with 1 when a check fails.`,
		Args: cli.NoArgs,
	}
	asJSON := cli.JSONFlag(cmd)
	prove := cmd.Flags().String("prove", "", "also start a container of this `image` on each GPU, as for a task, and see what limits its GPU memory")
	calibrates := cmd.Flags().String("calibrate", "", "measure on an idle GPU, with PyTorch in this `image`, what a process takes beside its tensors; estimates are made for that from then on")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, from, err := settings.Load(cmd.Flags())
		if err != nil {
			return err
		}
		client, err := cli.Connect(cmd, config, from)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("calibrate") {
			return calibrate(cmd.Context(), a, client, *calibrates, *prove, *asJSON)
		}
		var installed map[string]string
		if client.Socket() == settings.SystemSocket {
			installed = service(cmd.Context(), ask)
		}
		checks, err := client.Doctor(cmd.Context())
		if err == nil && *prove != "" {
			proven, proveErr := client.Prove(cmd.Context(), *prove)
			checks, err = append(checks, proven...), proveErr
		}
		var none *api.NoDaemonError
		switch {
		case errors.As(err, &none):
			checks = localChecks(cmd.Context(), config, none)
			if client.Socket() == settings.SystemSocket && installed != nil {
				checks[0].Fix = cmp.Or(serviceCheck(installed).Fix, checks[0].Fix)
			}
			if *prove != "" {
				checks = append(checks, api.Check{Name: "proof", Status: checkFailure, Detail: "not tried: the daemon starts its container", Fix: "carma daemon"})
			}
		case err != nil:
			return err
		}
		if client.Socket() == settings.SystemSocket {
			checks = append(checks, systemChecks(cmd.Context(), a, client, config.AdminGroup, installed)...)
		}
		checks = append(checks, environmentCheck(cmp.Or(config.Environment, environmentOf(cmd.Context(), client))), runtimeCheck(onnx.Status()))
		if *asJSON {
			if err := a.JSON(checks); err != nil {
				return err
			}
		} else {
			fmt.Fprint(a.Out, checkText(checks))
		}
		for _, c := range checks {
			if c.Status == checkFailure {
				return cli.CodeError(cli.ExitFailed)
			}
		}
		return nil
	}
	return cmd
}

// checkText lists checks. No text is cut, so that the fixes can be copied.
func checkText(checks []api.Check) string {
	var b strings.Builder
	name := 0
	for _, c := range checks {
		name = max(name, len(c.Name))
	}
	for _, c := range checks {
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", c.Status, name, cli.Printable(c.Name), cli.Printable(c.Detail))
		if c.Fix != "" {
			fmt.Fprintf(&b, "%-7s  %-*s  fix: %s\n", "", name, "", cli.Printable(c.Fix))
		}
	}
	return b.String()
}

// localChecks returns the checks that need no daemon.
func localChecks(ctx context.Context, config settings.Config, none *api.NoDaemonError) []api.Check {
	checks := []api.Check{
		socketCheck(none), dataCheck(config.DataDir), engineCheck(ctx, config), driverCheck("/", config.GPUs),
	}
	if c := journalCheck(config.DataDir); c.Name != "" {
		checks = append(checks, c)
	}
	return checks
}

// journalCheck returns a failure if this program cannot read the journal, or an empty
// check.
func journalCheck(dir string) api.Check {
	j, err := journal.OpenReadOnly(dir)
	if err == nil {
		err = j.View(verify.Readable)
		_ = j.Close()
	}
	if !errors.Is(err, journal.ErrNewer) {
		return api.Check{}
	}
	return api.Check{Name: "journal", Status: checkFailure, Detail: err.Error(), Fix: "install that version; or docs/install.md, Back to an older version"}
}

func socketCheck(none *api.NoDaemonError) api.Check {
	c := api.Check{Name: "daemon", Status: checkFailure, Detail: none.Error(), Fix: "carma daemon"}
	switch {
	case errors.Is(none, fs.ErrPermission):
		c.Detail, c.Fix = "no permission to use "+none.Socket, "ask its owner for access, or run your own: carma daemon --socket ..."
	case errors.Is(none, syscall.ECONNREFUSED):
		c.Detail += ": the socket is there, but nobody listens"
	}
	return c
}

// environmentOf returns the environment that a daemon selects for its GPUs, or "" for the
// default.
func environmentOf(ctx context.Context, client *api.Client) string {
	info, err := client.Info(ctx)
	if err != nil || info.Simulated {
		return ""
	}
	gpus, err := client.GPUs(ctx)
	if err != nil {
		return ""
	}
	var models []string
	for _, g := range gpus {
		models = append(models, g.Model)
	}
	return environments.For(models)
}

// environmentCheck names the software and GPU that estimates assume.
func environmentCheck(name string) api.Check {
	env, err := environments.Named(name)
	if err != nil {
		return api.Check{Name: "environment", Status: checkFailure, Detail: err.Error(), Fix: "correct environment: in the configuration"}
	}
	return api.Check{Name: "environment", Status: checkOK, Detail: fmt.Sprintf("%s: %s; context %s", env.Name, env.About, units.Bytes(env.Context+env.ConvContext))}
}

// runtimeCheck never fails: only the learned estimator needs the library. It shows the
// library that this process finds; a daemon with another environment may differ.
func runtimeCheck(s onnx.State) api.Check {
	c := api.Check{Name: "ONNX Runtime", Status: checkOK, Detail: strings.TrimSpace(s.Version + " " + s.Path)}
	if !s.On {
		c.Detail = "off: " + s.Why
	}
	return c
}

// leastFree is the free space that the journal and the output should have.
const leastFree = units.GiB

func dataCheck(dir string) api.Check {
	c := api.Check{Name: "data folder", Status: checkOK}
	there := dir // the deepest existing folder
	for {
		if _, err := os.Stat(there); err == nil || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	const writeAndEnter = 0o3
	if err := syscall.Access(there, writeAndEnter); err != nil {
		c.Status, c.Detail = checkFailure, fmt.Sprintf("%s cannot be written: %v", there, err)
		c.Fix = "run carma daemon as root, or with --data-dir in a folder of yours"
		return c
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(there, &stat); err != nil {
		c.Status, c.Detail = checkWarning, fmt.Sprintf("%s: free space unknown: %v", dir, err)
		return c
	}
	free := units.Bytes(stat.Bavail) * units.Bytes(stat.Bsize)
	c.Detail = fmt.Sprintf("%s, %s free", dir, free)
	if there != dir {
		c.Detail += ", will be made"
	}
	if free < leastFree {
		c.Status, c.Fix = checkWarning, "make room: submissions are refused when it is full"
	}
	return c
}

// driverCheck looks for the NVIDIA driver below root, which is / except in tests.
func driverCheck(root, source string) api.Check {
	c := api.Check{Name: "GPUs", Status: checkOK}
	line, err := os.ReadFile(filepath.Join(root, "/proc/driver/nvidia/version"))
	sign := gpu.NVIDIAHere(root)
	first, _, _ := strings.Cut(string(line), "\n")
	switch {
	case strings.HasPrefix(source, "sim:"):
		c.Detail = "simulated: " + strings.TrimPrefix(source, "sim:")
	case err == nil:
		c.Detail = strings.Join(strings.Fields(first), " ")
	case source != "auto":
		c.Status, c.Detail = checkFailure, "no NVIDIA driver is loaded"
		c.Fix = "install the driver, or simulate: carma daemon --gpus sim:dgx-station-a100"
	case sign != "":
		c.Status, c.Detail = checkFailure, "there is "+sign+", but no NVIDIA driver is loaded: the daemon will not start"
		c.Fix = "modprobe nvidia, then look at dmesg; if it is not installed, install it (docs/install.md); to simulate GPUs all the same: gpus: sim:dgx-station-a100 in the configuration"
	default:
		c.Status, c.Detail = checkWarning, "no NVIDIA driver is loaded; the daemon would simulate GPUs"
		c.Fix = "install the driver, or say so: carma daemon --gpus sim:dgx-station-a100"
	}
	return c
}

// engineAnswers is the longest time to wait for an engine's answer.
const engineAnswers = 3 * time.Second

func engineCheck(ctx context.Context, config settings.Config) api.Check {
	c := api.Check{Name: "engine", Status: checkOK}
	driver, err := engine.Open(config)
	if err != nil {
		c.Status, c.Detail, c.Fix = checkFailure, err.Error(), "run carma as root"
		if wrong, ok := errors.AsType[*cli.UsageError](err); ok && wrong.Hint != "" {
			c.Detail, c.Fix = wrong.What, wrong.Hint
		}
		return c
	}
	defer func() { _ = driver.Close() }()
	ctx, cancel := context.WithTimeout(ctx, engineAnswers)
	defer cancel()
	where, advice := driver.Name(), containers.Advice{}
	if a, ok := driver.(containers.Advised); ok {
		where, advice = driver.Name()+" at "+a.Address(), a.Advice()
	}
	engine, err := driver.Ping(ctx)
	switch {
	case err == nil:
		c.Detail = strings.Replace(where, driver.Name(), driver.Name()+" "+engine.Version, 1)
		if len(engine.Notes) > 0 {
			c.Status, c.Detail = checkWarning, c.Detail+"; "+strings.Join(engine.Notes, "; ")
		}
	case denied(err):
		c.Status, c.Detail = checkFailure, "no permission to use "+where
		c.Fix = "run carma as root"
		if advice.Group != "" {
			c.Fix = fmt.Sprintf("sudo usermod -aG %s $USER, then log in again", advice.Group)
		}
	default:
		why := err.Error()
		if _, cause, ok := strings.Cut(why, containers.ErrUnavailable.Error()+": "); ok {
			why = cause
		}
		c.Status, c.Detail = checkFailure, fmt.Sprintf("%s does not answer: %s", where, why)
		if c.Fix = advice.Fix; c.Fix != "" {
			break
		}
		c.Fix = fmt.Sprintf("start it: systemctl start %s (or: %s &); to install it: apt-get install %s", advice.Service, advice.Program, advice.Package)
	}
	return c
}

// denied reports whether an engine exists but refuses this user.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied")
}
