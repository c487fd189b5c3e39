package main

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

	"carma/configs"
	"carma/runner/api"
	"carma/runner/mps"
)

func (a *app) mpsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mps COMMAND",
		Short: "Start, stop and look at NVIDIA's Multi-Process Service",
		Long: `Start, stop and look at the control daemons of NVIDIA's Multi-Process Service,
which lets the kernels of several tasks run on a GPU at the same time. There is
one for each trust group (a user, or all: shared) and set of GPUs. The carma
daemon starts them itself if its configuration says mps: user or mps: shared;
these commands do it by hand.

The compute mode of the GPUs stays as it is unless --compute-mode asks for one.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.mpsStartCommand(), a.mpsStopCommand(), a.mpsStatusCommand())
	return cmd
}

// mpsFlags name a group.
type mpsFlags struct {
	gpus   []string
	user   string
	shared bool
}

func (f *mpsFlags) flags(set *pflag.FlagSet) {
	set.StringSliceVar(&f.gpus, "gpus", nil, "the `GPUs` by index or UUID, as 0,1 (default: all)")
	set.StringVar(&f.user, "user", "", "the `user` whose tasks are clients (default: you)")
	set.BoolVar(&f.shared, "shared", false, "all users' tasks are clients")
}

func (a *app) mpsStartCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "start [flags]",
		Short: "Start the control daemon of a group, and print its pipe folder",
		Args:  noArgs,
	}
	var f mpsFlags
	f.flags(cmd.Flags())
	var mode string
	choiceFlag(cmd.Flags(), &mode, mps.ComputeModes, "compute-mode", "set the GPUs' compute mode first")
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
			return mpsError(err)
		}
		a.println(group.Pipe)
		return nil
	}
	return cmd
}

func (a *app) mpsStopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop [flags]",
		Short: "Stop the control daemon of a group, or all",
		Args:  noArgs,
	}
	var f mpsFlags
	f.flags(cmd.Flags())
	all := cmd.Flags().Bool("all", false, "stop all groups")
	force := cmd.Flags().Bool("force", false, "stop it though tasks use it: they die with it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var groups *mps.Groups
		var list []*mps.Group
		var err error
		if *all {
			if groups, err = mpsGroups(cmd); err == nil {
				list, err = groups.List()
			}
		} else {
			var one *mps.Group
			groups, one, err = f.group(cmd)
			list = []*mps.Group{one}
		}
		if err != nil {
			return mpsError(err)
		}
		for _, group := range list {
			if err := groups.Stop(cmd.Context(), group, *force); err != nil {
				if busy, ok := errors.AsType[*mps.BusyError](err); ok {
					return usagef("wait until they end, or say --force", "%v", busy)
				}
				return mpsError(err)
			}
		}
		return nil
	}
	return cmd
}

func (a *app) mpsStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "List the control daemons, their servers and clients",
		Args:  noArgs,
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		groups, err := mpsGroups(cmd)
		if err != nil {
			return err
		}
		list, err := groups.List()
		if err != nil {
			return mpsError(err)
		}
		states := []mpsState{}
		for _, group := range list {
			states = append(states, stateOf(cmd.Context(), group))
		}
		if *asJSON {
			return a.json(states)
		}
		if len(states) == 0 {
			a.println("no MPS control daemon was started in " + groups.Dir)
			return nil
		}
		return mpsTable(states).write(a.out, widthOf(a.out))
	}
	return cmd
}

// mpsState is a group as status shows it.
type mpsState struct {
	Group   string       `json:"group"`
	GPUs    []string     `json:"gpus"`
	Running bool         `json:"running"`
	PID     int          `json:"pid,omitempty"`
	Pipe    string       `json:"pipe"`
	Log     string       `json:"log"`
	Servers []mps.Server `json:"servers,omitempty"`
	Error   string       `json:"error,omitempty"`
}

func stateOf(ctx context.Context, g *mps.Group) mpsState {
	s := mpsState{Group: g.Name, GPUs: g.GPUs, Pipe: g.Pipe, Log: g.Log}
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

func mpsTable(states []mpsState) *table {
	t := &table{columns: []column{
		{title: "GROUP"}, {title: "GPUS", least: 8, share: 2}, {title: "STATE"}, {title: "PID", right: true}, {title: "CLIENTS", right: true}, {title: "PIPE", least: 12, share: 3},
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
		t.add(s.Group, strings.Join(s.GPUs, ","), state, pid, strconv.Itoa(clients), s.Pipe)
	}
	return t
}

func mpsGroups(cmd *cobra.Command) (*mps.Groups, error) {
	config, _, err := configs.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	return &mps.Groups{Dir: config.MPSDir, Binary: config.MPSControl}, nil
}

// group is the one that the flags name.
func (f *mpsFlags) group(cmd *cobra.Command) (*mps.Groups, *mps.Group, error) {
	groups, err := mpsGroups(cmd)
	if err != nil {
		return nil, nil, err
	}
	uid, gid := os.Getuid(), os.Getgid()
	if f.user != "" {
		if f.shared {
			return nil, nil, usagef("leave one of them out", "--shared is for all users, --user for one")
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
		return 0, 0, usagef("", "--user %s: there is no such user on this machine", name)
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}

// uuids are the UUIDs of the GPUs named. Indexes are the carma daemon's.
func (f *mpsFlags) uuids(cmd *cobra.Command) ([]string, error) {
	isUUID := func(s string) bool { return strings.HasPrefix(s, "GPU-") || strings.HasPrefix(s, "MIG-") }
	if len(f.gpus) > 0 && !slices.ContainsFunc(f.gpus, func(s string) bool { return !isUUID(s) }) {
		return f.gpus, nil
	}
	config, from, err := configs.Load(cmd.Flags())
	if err != nil {
		return nil, err
	}
	all, err := api.NewClient(configs.ClientSocket(config, from)).GPUs(cmd.Context())
	if err != nil {
		var none *api.NoDaemonError
		if errors.As(err, &none) {
			return nil, usagef("give UUIDs, as nvidia-smi -L prints them, or start the carma daemon", "--gpus: indexes are the carma daemon's, and none answers")
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
			return nil, usagef("carma gpus lists them", "--gpus %s: no such GPU", name)
		}
	}
	return list, nil
}

// mpsError makes what the caller may not do a matter of who calls.
func mpsError(err error) error {
	if errors.Is(err, mps.ErrNotInstalled) {
		return usagef("mps-control: in the configuration names it", "%v", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return usagef("do it as root, or choose a folder of yours: CARMA_MPS_DIR=...", "%v", err)
	}
	return err
}
