// Package server contains the commands that describe the daemon and its machine: gpus,
// info and config.
package server

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/internal/units"
	"carma/runner/api"
)

// GPUs returns the command carma gpus.
func GPUs(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "gpus [flags]",
		GroupID: cli.GroupServer,
		Short:   "List the GPUs: memory reserved and used, activity, tasks",
		Long: `List the GPUs. Memory is in GiB: RESERVED is booked for tasks, USED is
measured and includes foreign memory, of processes that are not carma's.
SMACT is the activity of the streaming multiprocessors, 0 to 1; with a ~ it is
an upper bound, the share of time in which any kernel ran. --json also has its
source, temperature, energy and memory errors.

SHARING is how the tasks on a GPU share it: mps (kernels of several tasks at the
same time), users (each user's tasks by MPS; users take turns), turns (which
cost 10 % where tasks fill the GPU's time) or alone (one at a time).

A task that was suspended on a GPU stands there as suspended. The last line is
the machine's memory and processors, where they are booked. --json also says on
which GPUs tasks can be suspended.

--watch prints the table again and again: on a terminal in its place, in a pipe
with an empty line between two; Ctrl-C ends it with exit code 0. carma top shows
GPUs and tasks live.`,
		Args: cli.NoArgs,
	}
	full := cmd.Flags().Bool("no-trunc", false, "do not cut the table to the width; also print UUIDs")
	asJSON := cli.JSONFlag(cmd)
	every := cli.WatchFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := cli.NoWatch(cmd, "json"); err != nil {
			return err
		}
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		once := func(ctx context.Context, to *cli.App) error {
			return printGPUs(ctx, to, client, cli.WidthOf(a.Out), *full, *asJSON)
		}
		if *every > 0 {
			client.Stopping = nil // the table remains while the next daemon starts
			return a.Watch(cmd.Context(), *every, once)
		}
		return once(cmd.Context(), a)
	}
	return cmd
}

// printGPUs prints the table of the GPUs, or JSON.
func printGPUs(ctx context.Context, a *cli.App, client *api.Client, width int, full, asJSON bool) error {
	gpus, err := client.GPUs(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if gpus == nil {
			gpus = []api.GPU{}
		}
		return a.JSON(gpus)
	}
	if full {
		width = 0
	}
	if err := gpuTable(gpus, width, full).Write(a.Out, width); err != nil {
		return err
	}
	if info, err := client.Info(ctx); err == nil && info.Host != nil {
		a.Printf("host: %s\n", HostLine(info.Host))
	}
	return nil
}

// gpuTable shows the GPUs within a width; 0 means no limit.
func gpuTable(gpus []api.GPU, width int, uuids bool) *cli.Table {
	t := &cli.Table{Columns: []cli.Column{
		{Title: "GPU", Right: true}, {Title: "MODEL", Least: 8, Share: 3}, {Title: "RESERVED", Right: true}, {Title: "USED", Right: true},
		{Title: "TOTAL", Right: true}, {Title: "SMACT", Right: true}, {Title: "POWER", Right: true},
		{Title: "SHARING"},
	}}
	// Simulated GPUs have no temperature.
	warm := slices.ContainsFunc(gpus, func(g api.GPU) bool { return g.TemperatureC > 0 })
	if warm {
		t.Columns = append(t.Columns, cli.Column{Title: "TEMP", Right: true})
	}
	tasks := len(t.Columns)
	t.Columns = append(t.Columns, cli.Column{Title: "TASKS", Least: leastTasks, Share: 1})
	if uuids {
		t.Columns = append(t.Columns, cli.Column{Title: "UUID"})
	}
	for _, g := range gpus {
		cells := []string{
			strconv.Itoa(g.Index), strings.TrimPrefix(g.Model, "NVIDIA "), cli.GiB(g.Reserved), cli.GiB(g.Used), cli.GiB(g.Capacity),
			SMACT(g), fmt.Sprintf("%.0fW", g.PowerW), shared(g),
		}
		if warm {
			cells = append(cells, celsius(g.TemperatureC))
		}
		cells = append(cells, "")
		if uuids {
			cells = append(cells, g.UUID)
		}
		t.Add(cells...)
	}
	room := math.MaxInt
	if width > 0 {
		room = max(leastTasks, width-t.Natural()+len("TASKS"))
	}
	for i, g := range gpus {
		t.Rows[i][tasks] = cli.Printable(fitting(g, room))
	}
	return t
}

const leastTasks = 15

// SMACT formats a GPU's SM activity, marked if it is only a bound.
func SMACT(g api.GPU) string {
	mark := ""
	if g.Coarse {
		mark = "~"
	}
	return fmt.Sprintf("%s%.2f", mark, g.SMACT)
}

// shared returns a short word for the way in which tasks share a GPU.
func shared(g api.GPU) string {
	switch g.Sharing {
	case "time-slicing":
		return "turns"
	case "mps-user":
		return "users"
	case "": // from an older daemon
		return "-"
	}
	return g.Sharing
}

func celsius(t float64) string {
	if t == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0fC", t)
}

// fitting lists the tasks as completely as the room allows: all numbers matter more than
// some names.
func fitting(g api.GPU, room int) string {
	for _, most := range []int{1000, 16, 12, 8} {
		if s := residents(g, most); utf8.RuneCountInString(s) <= room {
			return s
		}
	}
	return residents(g, 0)
}

func residents(g api.GPU, nameWidth int) string {
	if parts := Residents(g, nameWidth); len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	return "-"
}

// Residents lists the content of a GPU, with names up to a width. Faults come first,
// because they must not be cut off.
func Residents(g api.GPU, nameWidth int) (parts []string) {
	if g.Fault != "" {
		text := "FAULT: " + g.Fault
		if g.FaultLasts {
			text += " (until it is reset; carma undrain gives it tasks again)"
		}
		parts = append(parts, text)
	}
	if g.Closed != nil {
		parts = append(parts, "DRAINED"+cli.ClosedBy(g.Closed))
	}
	for _, v := range g.Reservations {
		what := "reserved"
		if v.Memory > 0 {
			what = units.Bytes(v.Memory).String() + " reserved"
		}
		parts = append(parts, fmt.Sprintf("%s for %s %s to %s", what, v.For, v.From.Local().Format("Mon 15:04"), v.Until.Local().Format("Mon 15:04")))
	}
	if g.HeldFor != 0 {
		parts = append(parts, fmt.Sprintf("kept for %d", g.HeldFor))
	}
	for _, r := range g.Tasks {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", r.Task, cli.Shorten(r.Name, nameWidth))))
	}
	for _, r := range g.Suspended {
		parts = append(parts, strings.Join(strings.Fields(fmt.Sprintf("suspended %d %s", r.Task, cli.Shorten(r.Name, nameWidth))), " "))
	}
	if g.Foreign > 0 {
		parts = append(parts, units.Bytes(g.Foreign).String()+" foreign")
	}
	return parts
}
