// Package mps contains the command carma mps: manual control of NVIDIA's Multi-Process
// Service.
package mps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carma/cmd/carma/cli"
	"carma/cmd/carma/settings"
	"carma/runner/api"
	"carma/runner/mps"
)

// Command returns the command carma mps.
func Command(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "mps COMMAND",
		GroupID: cli.GroupServer,
		Short:   "Start, stop and look at NVIDIA's Multi-Process Service",
		Long: `Start, stop and look at the control daemons of NVIDIA's Multi-Process Service,
which lets the kernels of several tasks run on a GPU at the same time. There is
one for each trust group (a user, or all: shared) and set of GPUs. The carma
daemon starts them itself unless its configuration says mps: off; these
commands do it by hand.

The compute mode of the GPUs stays as it is unless --compute-mode asks for one.`,
	}, startCommand(a), stopCommand(a), statusCommand(a))
}

// groupFlags name a group.
type groupFlags struct {
	gpus   []string
	user   string
	shared bool
}

func (f *groupFlags) flags(set *pflag.FlagSet) {
	set.StringSliceVar(&f.gpus, "gpus", nil, "the `GPUs` by index or UUID, as 0,1 (default: all)")
	set.StringVar(&f.user, "user", "", "the `user` whose tasks are clients (default: you)")
	set.BoolVar(&f.shared, "shared", false, "all users' tasks are clients")
}

func startCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start [flags]",
		Short: "Start the control daemon of a group, and print its pipe folder",
		Args:  cli.NoArgs,
	}
	var f groupFlags
	f.flags(cmd.Flags())
	var mode string
	cli.ChoiceFlag(cmd.Flags(), &mode, mps.ComputeModes, "compute-mode", "set the GPUs' compute mode first")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		groups, group, err := f.group(cmd)
		if err != nil {
			return err
		}
		if mode != "" {
			if err := mps.SetComputeMode(cmd.Context(), "", group.GPUs, mode); err != nil {
				return fmt.Errorf("--compute-mode %s: %w", mode, err)
			}
		}
		if err := groups.Ensure(cmd.Context(), group); err != nil {
			return withHint(err)
		}
		a.Println(group.Pipe)
		return nil
	}
	return cmd
}

func stopCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop [flags]",
		Short: "Stop the control daemon of a group, or all",
		Args:  cli.NoArgs,
	}
	var f groupFlags
	f.flags(cmd.Flags())
	all := cmd.Flags().Bool("all", false, "stop all groups")
	force := cmd.Flags().Bool("force", false, "stop it even if tasks use it; they end with it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var groups *mps.Groups
		var list []*mps.Group
		var err error
		if *all {
			if groups, err = configured(cmd); err == nil {
				list, err = groups.List()
			}
		} else {
			var one *mps.Group
			groups, one, err = f.group(cmd)
			list = []*mps.Group{one}
		}
		if err != nil {
			return withHint(err)
		}
		for _, group := range list {
			if err := groups.Stop(cmd.Context(), group, *force); err != nil {
				if busy, ok := errors.AsType[*mps.BusyError](err); ok {
					return cli.Usagef("wait until they end, or say --force", "%v", busy)
				}
				return withHint(err)
			}
		}
		return nil
	}
	return cmd
}

func statusCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "List the control daemons, their servers and clients",
		Args:  cli.NoArgs,
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		groups, err := configured(cmd)
		if err != nil {
			return err
		}
		list, err := groups.List()
		if err != nil {
			return withHint(err)
		}
		states := []groupState{}
		for _, group := range list {
			states = append(states, stateOf(cmd.Context(), group))
		}
		if *asJSON {
			return a.JSON(states)
		}
		if len(states) == 0 {
			a.Println("no MPS control daemon was started in " + groups.Dir)
			return nil
		}
		return a.Print(table(states))
	}
	return cmd
}

// groupState is a group as shown by status.
type groupState struct {
	Group   string       `json:"group"`
	GPUs    []string     `json:"gpus"`
	Running bool         `json:"running"`
	PID     int          `json:"pid,omitempty"`
	Pipe    string       `json:"pipe"`
	Log     string       `json:"log"`
	Servers []mps.Server `json:"servers,omitempty"`
	Error   string       `json:"error,omitempty"`
}

func stateOf(ctx context.Context, g *mps.Group) groupState {
	s := groupState{Group: g.Name, GPUs: g.GPUs, Pipe: g.Pipe, Log: g.Log}
	servers, err := g.Servers(ctx)
	switch {
	case errors.Is(err, mps.ErrNotRunning):
	case err != nil:
		s.Error = err.Error()
	default:
		s.Running, s.PID, s.Servers = true, g.PID(), servers
	}
	return s
}

func table(states []groupState) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "GROUP"}, {Title: "GPUS", Least: 8, Share: 2}, {Title: "STATE"}, {Title: "PID", Right: true}, {Title: "CLIENTS", Right: true}, {Title: "PIPE", Least: 12, Share: 3},
	}}
	for _, s := range states {
		state, pid, clients := "stopped", "-", 0
		if s.Running {
			state, pid = "no server yet", strconv.Itoa(s.PID)
		}
		for _, server := range s.Servers {
			state = strings.ToLower(server.Status)
			clients += len(server.Clients)
		}
		if s.Error != "" {
			state = s.Error
		}
		t.Add(s.Group, strings.Join(s.GPUs, ","), state, pid, strconv.Itoa(clients), s.Pipe)
	}
	return t
}

func configured(cmd *cobra.Command) (*mps.Groups, error) {
	config, _, err := settings.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	control, err := mps.Find(config.MPSControl)
	if err != nil {
		control = config.MPSControl // the first use reports that the program is missing
	}
	return &mps.Groups{Dir: config.MPSDir, Binary: control}, nil
}

// group returns the group that the flags name.
func (f *groupFlags) group(cmd *cobra.Command) (*mps.Groups, *mps.Group, error) {
	groups, err := configured(cmd)
	if err != nil {
		return nil, nil, err
	}
	uid, gid := os.Getuid(), os.Getgid()
	if f.user != "" {
		if f.shared {
			return nil, nil, cli.Usagef("leave one of them out", "--shared is for all users, --user for one")
		}
		if uid, gid, err = idsOf(f.user); err != nil {
			return nil, nil, err
		}
	}
	groups.Shared = f.shared
	uuids, err := f.uuids(cmd)
	if err != nil {
		return nil, nil, err
	}
	return groups, groups.Of(uid, gid, uuids), nil
}

func idsOf(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return 0, 0, cli.Usagef("", "--user %s: there is no such user on this machine", name)
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}

// uuids returns the UUIDs of the named GPUs. An index is the carma daemon's.
func (f *groupFlags) uuids(cmd *cobra.Command) ([]string, error) {
	isUUID := func(s string) bool { return strings.HasPrefix(s, "GPU-") || strings.HasPrefix(s, "MIG-") }
	if len(f.gpus) > 0 && !slices.ContainsFunc(f.gpus, func(s string) bool { return !isUUID(s) }) {
		return f.gpus, nil
	}
	config, from, err := settings.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	// This machine's daemon, regardless of the selected context, because the GPUs are here.
	all, err := api.NewClient(settings.ClientSocket(config, from)).GPUs(cmd.Context())
	if err != nil {
		var none *api.NoDaemonError
		if errors.As(err, &none) {
			return nil, cli.Usagef("give UUIDs, as nvidia-smi -L prints them, or start the carma daemon", "--gpus: indexes are the carma daemon's, and none answers")
		}
		return nil, err
	}
	var list []string
	for _, g := range all {
		if len(f.gpus) == 0 || slices.Contains(f.gpus, g.UUID) || slices.Contains(f.gpus, strconv.Itoa(g.Index)) {
			list = append(list, g.UUID)
		}
	}
	for _, name := range f.gpus {
		if !slices.ContainsFunc(all, func(g api.GPU) bool { return g.UUID == name || strconv.Itoa(g.Index) == name }) {
			return nil, cli.Usagef("carma gpus lists them", "--gpus %s: no such GPU", name)
		}
	}
	return list, nil
}

// withHint adds a hint about root to an error of missing permissions.
func withHint(err error) error {
	if errors.Is(err, mps.ErrNotInstalled) {
		return cli.Usagef("mps-control: in the configuration names it", "%v", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return cli.Usagef("do it as root, or choose a folder of yours: CARMA_MPS_DIR=...", "%v", err)
	}
	return err
}
