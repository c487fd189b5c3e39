package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carma/cmd/carma/cli"
	"carma/internal/units"
	"carma/runner/api"
)

// Info returns the command carma info.
func Info(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "info [flags]",
		GroupID: cli.GroupServer,
		Short:   "Describe the daemon",
		Args:    cli.NoArgs,
	}
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := a.Client(cmd)
		if err != nil {
			return err
		}
		info, err := client.Info(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.JSON(info)
		}
		gpus := info.Source
		if info.Simulated {
			gpus += ", simulated, speed " + strconv.FormatFloat(info.Speed, 'g', -1, 64)
		}
		for _, line := range [][2]string{
			{"version", info.Version}, {"process", strconv.Itoa(info.PID)}, {"socket", client.Socket()}, {"data", info.DataDir},
			{"GPUs", gpus}, {"host", HostLine(info.Host)}, {"engine", Engine(&info)}, {"policy", info.Policy},
			{"tasks", taskCounts(&info)}, {"output", outputLine(&info)}, {"kept", keptLine(&info)}, {"energy", energyLine(info.Energy)},
			{"time", info.Now.Format("2006-01-02 15:04:05 MST")},
		} {
			if line[1] != "" {
				a.Printf("%-8s %s\n", line[0], line[1])
			}
		}
		for _, x := range info.Trouble {
			if x.Code != "down" { // the engine's line contains it
				a.Printf("%-8s %s\n", "trouble", cli.Printable(x.String()))
			}
		}
		return nil
	}
	return cmd
}

// HostLine describes the allocated memory and processors of the machine, or is empty if
// these are not allocated.
func HostLine(h *api.Host) string {
	if h == nil {
		return ""
	}
	s := fmt.Sprintf("memory %s booked of %s", units.Bytes(h.Booked), units.Bytes(h.Memory))
	if len(h.Helpers) > 0 {
		s += fmt.Sprintf(" (%s by helpers of suites)", helpersMemory(h))
	}
	if h.Away > 0 {
		s += fmt.Sprintf(" (%s for suspended tasks)", units.Bytes(h.Away))
	}
	s += fmt.Sprintf(", %s used by tasks", units.Bytes(h.Used))
	if h.Available > 0 {
		s += ", " + units.Bytes(h.Available).String() + " available"
	}
	return s + fmt.Sprintf("; processors %g booked of %g", h.CPUsBooked, h.CPUs)
}

func helpersMemory(h *api.Host) (sum units.Bytes) {
	for _, o := range h.Helpers {
		sum += units.Bytes(o.Memory)
	}
	return sum
}

// Engine names a daemon's engine, or reports that it is down.
func Engine(info *api.Info) string {
	if info.EngineDown != "" {
		return info.Driver + ": down: " + cli.Printable(info.EngineDown)
	}
	return strings.TrimSpace(info.Driver + " " + info.Engine)
}

// outputLine describes the space that output takes, and the number of finished tasks
// kept.
func outputLine(info *api.Info) string {
	o := info.Output
	if o == nil {
		return ""
	}
	s := fmt.Sprintf("%s of at most %s in %s, %d finished tasks kept", units.Bytes(o.Bytes), units.Bytes(o.Total), o.Dir, o.Finished)
	if o.Trouble != "" {
		s += "; cannot be kept now: " + cli.Printable(o.Trouble)
	}
	return s
}

// keptLine describes how long finished tasks are kept; sums of them are kept longer.
func keptLine(info *api.Info) string {
	var bounds []string
	if info.KeepTasksFor > 0 {
		bounds = append(bounds, "for "+cli.Age(info.KeepTasksFor))
	}
	if info.KeepTasks > 0 {
		bounds = append(bounds, fmt.Sprintf("at most %d", info.KeepTasks))
	}
	if len(bounds) == 0 {
		return ""
	}
	return "finished tasks " + strings.Join(bounds, ", ") + "; what they used, for carma report, 400 days"
}

// namedUsers is the largest number of users in an energy line.
const namedUsers = 3

// energyLine describes the energy used by the tasks, and the users with the most.
func energyLine(e *api.Energy) string {
	if e == nil {
		return ""
	}
	s := fmt.Sprintf("%s by tasks since %s, %s without tasks", units.Joules(e.TasksJ), e.Since.Format("2006-01-02"), units.Joules(e.IdleJ))
	users := slices.SortedFunc(maps.Keys(e.Users), func(a, b string) int { return cmp.Or(cmp.Compare(e.Users[b], e.Users[a]), cmp.Compare(a, b)) })
	for i, user := range users[:min(namedUsers, len(users))] {
		s += []string{"; most by ", ", ", ", "}[i] + cli.Printable(user) + " " + units.Joules(e.Users[user]).String()
	}
	return s
}

// taskCounts counts the tasks of each kind.
func taskCounts(info *api.Info) string {
	s := fmt.Sprintf("%d running, %d queued", info.Running, info.Queued)
	if info.Suspended > 0 {
		s += fmt.Sprintf(", %d suspended", info.Suspended)
	}
	if info.Held > 0 {
		s += fmt.Sprintf(", %d held or estimated", info.Held)
	}
	if info.Paused != nil {
		s += "; launching is paused" + cli.ClosedBy(info.Paused)
	}
	return s
}
