package settings

import (
	"fmt"
	"path/filepath"
	"strings"

	"carma/internal/units"
	"carma/mapper/rules"
)

// taskKeys configure the permissions and limits of tasks and their users.
var taskKeys = []key{
	setting("allowed-mounts", "`folders` tasks may mount; ~ is the submitter's home", func(c *Config) *[]string { return &c.AllowedMounts }, each(func(dir string) error {
		if dir != "~" && !strings.HasPrefix(dir, "~/") && !filepath.IsAbs(dir) {
			return fmt.Errorf("%q is neither absolute nor below ~", dir)
		}
		return nil
	})),
	setting("host-tasks", "who may run tasks without an image: all, admins, none or the name of a group", func(c *Config) *string { return &c.HostTasks }, named("nobody named; write all, admins, none or the name of a group")),
	setting("host-folders", "`folders` of the machine that tasks without an image see, read-only", func(c *Config) *[]string { return &c.HostFolders }, hostFolders),
	setting("allowed-devices", "`patterns` of the devices that tasks may have besides their GPUs", func(c *Config) *[]string { return &c.AllowedDevices }, each(validDevices)),
	setting("allowed-ulimits", "highest `limits` of processes that tasks may set, each name=most, or name for no limit", func(c *Config) *[]string { return &c.AllowedUlimits }, each(validUlimit)),
	setting("admin-group", "`group` of the admins, who may see, stop and remove the tasks of others", func(c *Config) *string { return &c.AdminGroup }),

	setting("visibility", "who sees a task's environment and output, if the task does not say: private (its owner and admins) or open (all)", func(c *Config) *string { return &c.Visibility }, rules.Among("choice", Visibilities)),
	setting("oom-texts", "`texts` in errors of programs that mean that GPU memory ran out, besides those that carma knows", func(c *Config) *[]string { return &c.OOMTexts }, each(func(text string) error {
		if len(strings.TrimSpace(text)) < 4 {
			return fmt.Errorf("%q would match too much; write at least 4 letters of the error", text)
		}
		return nil
	})),
	setting("all-host-mem", "host `memory` that all tasks together may book; 0: nine tenths of the machine's, and on a simulated server nothing is booked", func(c *Config) *units.Bytes { return &c.AllHostMem }),
	setting("all-cpus", "processors that all tasks together may book; 0: the machine's, and on a simulated server none are booked", func(c *Config) *float64 { return &c.AllCPUs }, rules.Within(0, 1e6, "0 is the machine's")),
	setting("host-mem", "most host `memory` of a task that does not ask for an amount; 0: what nobody has booked", func(c *Config) *units.Bytes { return &c.HostMem }),
	setting("max-host-mem", "most host `memory` a task may ask for; 0: nine tenths of the machine's", func(c *Config) *units.Bytes { return &c.MaxHostMem }),
	setting("cpus", "processors of a task that does not ask for another number; 0: all", func(c *Config) *float64 { return &c.CPUs }, rules.Within(0, 1e6, "0 is all")),
	setting("max-cpus", "most processors a task may ask for; 0: the machine's", func(c *Config) *float64 { return &c.MaxCPUs }, rules.Within(0, 1e6, "0 is the machine's")),
	setting("pids", "processes and threads of a task that does not ask for another number; 0: max-pids", func(c *Config) *int { return &c.Pids }, notBelow0),
	setting("max-pids", "most processes and threads a task may ask for; 0: half of the machine's limit", func(c *Config) *int { return &c.MaxPids }, notBelow0),
	setting("shm-size", "`size` of /dev/shm of a task that does not ask for another size; 0: half of its host memory", func(c *Config) *units.Bytes { return &c.ShmSize }),
	setting("max-shm-size", "largest /dev/shm a task may ask for; 0: its host memory", func(c *Config) *units.Bytes { return &c.MaxShmSize }),
	setting("helper-host-mem", "most host `memory` of a suite's helper that does not ask for an amount; 0: an eighth of max-host-mem, at least 512M", func(c *Config) *units.Bytes { return &c.HelperHostMem }),
	setting("helper-reserve", "host `memory` that is booked for a helper that does not ask; 0: an eighth of the most that it may use, at least 256M", func(c *Config) *units.Bytes { return &c.HelperReserve }),
	setting("helper-cpus", "processors of a helper that does not ask for another number; 0: cpus, else a quarter of max-cpus, at least 1", func(c *Config) *float64 { return &c.HelperCPUs }, rules.Within(0, 1e6, "0 is a quarter of max-cpus")),
	setting("user-tasks", "most unfinished tasks of one user; 0: no limit", func(c *Config) *int { return &c.UserTasks }, notBelow0),
	setting("user-bytes", "most bytes of the submissions of one user's unfinished tasks; 0: no limit", func(c *Config) *units.Bytes { return &c.UserBytes }),
	setting("user-connections", "most open connections of one user to the daemon; 0: no limit", func(c *Config) *int { return &c.UserConnections }, notBelow0),
	setting("user-suites", "most suites with helpers of one user at a time; 0: no limit", func(c *Config) *int { return &c.UserSuites }, notBelow0),
	setting("user-helpers", "most helpers of one user's suites together; 0: no limit", func(c *Config) *int { return &c.UserHelpers }, notBelow0),
	setting("user-volumes", "most volumes in one user's suites that are up; 0: no limit", func(c *Config) *int { return &c.UserVolumes }, notBelow0),
	setting("high-priority", "who may use priority high: all, admins, or the names of users and groups; admins always may", func(c *Config) *string { return &c.HighPriority }, named("nobody named; write all, admins, or the names of users and groups")),
	setting("user-high", "most unfinished tasks of one user with priority high; 0: no limit", func(c *Config) *int { return &c.UserHigh }, notBelow0),
}
