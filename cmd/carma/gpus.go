package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"carma/mapper/units"

	"github.com/spf13/cobra"

	"carma/runner/api"
)

func (a *app) gpusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gpus [flags]",
		Short: "List the GPUs: memory reserved and used, activity, tasks",
		Long: `List the GPUs. Memory is in GiB: RESERVED is booked for tasks, USED is
measured and includes foreign memory, of processes that are not carma's.
SMACT is the activity of the streaming multiprocessors, 0 to 1; with a ~ it is
an upper bound, the share of time in which any kernel ran. --json also has
its source, temperature, energy and memory errors.`,
		Args: noArgs,
	}
	full := cmd.Flags().Bool("no-trunc", false, "do not cut the table to the width; UUIDs too")
	asJSON := addJSON(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		gpus, err := client.GPUs(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			if gpus == nil {
				gpus = []api.GPU{}
			}
			return a.json(gpus)
		}
		width := widthOf(a.out)
		if *full {
			width = 0
		}
		return gpuTable(gpus, width, *full).write(a.out, width)
	}
	return cmd
}

// gpuTable shows the GPUs in a width; 0 is no limit.
func gpuTable(gpus []api.GPU, width int, uuids bool) *table {
	t := &table{columns: []column{
		{title: "GPU", right: true}, {title: "MODEL", least: 12, share: 3}, {title: "RESERVED", right: true}, {title: "USED", right: true},
		{title: "TOTAL", right: true}, {title: "SMACT", right: true}, {title: "POWER", right: true},
	}}
	// Simulated GPUs have no temperature.
	warm := slices.ContainsFunc(gpus, func(g api.GPU) bool { return g.TemperatureC > 0 })
	if warm {
		t.columns = append(t.columns, column{title: "TEMP", right: true})
	}
	tasks := len(t.columns)
	t.columns = append(t.columns, column{title: "TASKS", least: leastTasks, share: 1})
	if uuids {
		t.columns = append(t.columns, column{title: "UUID"})
	}
	for _, g := range gpus {
		cells := []string{
			strconv.Itoa(g.Index), strings.TrimPrefix(g.Model, "NVIDIA "), gib(g.Reserved), gib(g.Used), gib(g.Capacity),
			smact(g), fmt.Sprintf("%.0fW", g.PowerW),
		}
		if warm {
			cells = append(cells, celsius(g.TemperatureC))
		}
		cells = append(cells, "")
		if uuids {
			cells = append(cells, g.UUID)
		}
		t.add(cells...)
	}
	room := math.MaxInt
	if width > 0 {
		room = max(leastTasks, width-t.natural()+len("TASKS"))
	}
	for i, g := range gpus {
		t.rows[i][tasks] = printable(fitting(g, room))
	}
	return t
}

const leastTasks = 15

// smact is a GPU's SM activity, marked when it is only a bound.
func smact(g api.GPU) string {
	mark := ""
	if g.Coarse {
		mark = "~"
	}
	return fmt.Sprintf("%s%.2f", mark, g.SMACT)
}

func celsius(t float64) string {
	if t == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0fC", t)
}

// fitting names the tasks as fully as the room allows: all their numbers
// matter more than some of their names.
func fitting(g api.GPU, room int) string {
	for _, most := range []int{1000, 16, 12, 8} {
		if s := residents(g, most); utf8.RuneCountInString(s) <= room {
			return s
		}
	}
	return residents(g, 0)
}

// residents is what is on a GPU: trouble first, it must not be cut off.
func residents(g api.GPU, nameWidth int) string {
	var parts []string
	if g.Fault != "" {
		parts = append(parts, "FAULT: "+g.Fault)
	}
	if g.HeldFor != 0 {
		parts = append(parts, fmt.Sprintf("kept for %d", g.HeldFor))
	}
	for _, r := range g.Tasks {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", r.Task, shorten(r.Name, nameWidth))))
	}
	if g.Foreign > 0 {
		parts = append(parts, units.Bytes(g.Foreign).String()+" foreign")
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}
