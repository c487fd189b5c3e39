package configs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// taskKeys are about what tasks and their users may do and take.
var taskKeys = []key{
	{"allowed-mounts", "`folders` tasks may mount; ~ is the submitter's home", func(c *Config) any { return &c.AllowedMounts }, func(c *Config) error {
		for _, dir := range c.AllowedMounts {
			if dir != "~" && !strings.HasPrefix(dir, "~/") && !filepath.IsAbs(dir) {
				return fmt.Errorf("%q is neither absolute nor below ~", dir)
			}
		}
		return nil
	}},
	{"host-tasks", "who may run tasks without an image: all, admins, none or the name of a group", func(c *Config) any { return &c.HostTasks }, func(c *Config) error {
		if c.HostTasks == "" {
			return errors.New("nobody named; write all, admins, none or the name of a group")
		}
		return nil
	}},
	{"host-folders", "`folders` of the machine that tasks without an image see, read-only", func(c *Config) any { return &c.HostFolders }, func(c *Config) error {
		return hostFolders(c.HostFolders)
	}},
	{"allowed-devices", "`patterns` of the devices that tasks may have besides their GPUs", func(c *Config) any { return &c.AllowedDevices }, func(c *Config) error {
		return devicePatterns(c.AllowedDevices)
	}},
	{"allowed-ulimits", "highest `limits` of processes that tasks may set, each name=most, or name for no limit", func(c *Config) any { return &c.AllowedUlimits }, func(c *Config) error {
		return ulimits(c.AllowedUlimits)
	}},
	{"admin-group", "`group` of the admins, who may see, stop and remove the tasks of others", func(c *Config) any { return &c.AdminGroup }, nil},

	{"visibility", "who sees a task's environment and output, if the task does not say: private (its owner and admins) or open (all)", func(c *Config) any { return &c.Visibility }, func(c *Config) error {
		return oneOf("choice", c.Visibility, Visibilities)
	}},
	{"oom-texts", "`texts` in errors of programs that mean that GPU memory ran out, besides those that carma knows", func(c *Config) any { return &c.OOMTexts }, func(c *Config) error {
		for _, text := range c.OOMTexts {
			if len(strings.TrimSpace(text)) < 4 {
				return fmt.Errorf("%q would match too much; write at least 4 letters of the error", text)
			}
		}
		return nil
	}},
	{"all-host-mem", "host `memory` that all tasks together may book; 0: nine tenths of the machine's, and on a simulated server nothing is booked", func(c *Config) any { return &c.AllHostMem }, nil},
	{"all-cpus", "processors that all tasks together may book; 0: the machine's, and on a simulated server none are booked", func(c *Config) any { return &c.AllCPUs }, func(c *Config) error {
		return between(c.AllCPUs, 0, 1e6, "0 is the machine's")
	}},
	{"host-mem", "most host `memory` of a task that does not ask for an amount; 0: what nobody has booked", func(c *Config) any { return &c.HostMem }, nil},
	{"max-host-mem", "most host `memory` a task may ask for; 0: nine tenths of the machine's", func(c *Config) any { return &c.MaxHostMem }, nil},
	{"cpus", "processors of a task that does not ask for another number; 0: all", func(c *Config) any { return &c.CPUs }, func(c *Config) error {
		return between(c.CPUs, 0, 1e6, "0 is all")
	}},
	{"max-cpus", "most processors a task may ask for; 0: the machine's", func(c *Config) any { return &c.MaxCPUs }, func(c *Config) error {
		return between(c.MaxCPUs, 0, 1e6, "0 is the machine's")
	}},
	{"pids", "processes and threads of a task that does not ask for another number; 0: max-pids", func(c *Config) any { return &c.Pids }, func(c *Config) error {
		return notBelow0(c.Pids)
	}},
	{"max-pids", "most processes and threads a task may ask for; 0: half of the machine's limit", func(c *Config) any { return &c.MaxPids }, func(c *Config) error {
		return notBelow0(c.MaxPids)
	}},
	{"shm-size", "`size` of /dev/shm of a task that does not ask for another size; 0: half of its host memory", func(c *Config) any { return &c.ShmSize }, nil},
	{"max-shm-size", "largest /dev/shm a task may ask for; 0: its host memory", func(c *Config) any { return &c.MaxShmSize }, nil},
	{"helper-host-mem", "most host `memory` of a suite's helper that does not ask for an amount; 0: an eighth of max-host-mem, at least 512M", func(c *Config) any { return &c.HelperHostMem }, nil},
	{"helper-reserve", "host `memory` that is booked for a helper that does not ask; 0: an eighth of the most that it may use, at least 256M", func(c *Config) any { return &c.HelperReserve }, nil},
	{"helper-cpus", "processors of a helper that does not ask for another number; 0: cpus, else a quarter of max-cpus, at least 1", func(c *Config) any { return &c.HelperCPUs }, func(c *Config) error {
		return between(c.HelperCPUs, 0, 1e6, "0 is a quarter of max-cpus")
	}},
	{"user-tasks", "most unfinished tasks of one user; 0: no limit", func(c *Config) any { return &c.UserTasks }, func(c *Config) error {
		return notBelow0(c.UserTasks)
	}},
	{"user-bytes", "most bytes of the submissions of one user's unfinished tasks; 0: no limit", func(c *Config) any { return &c.UserBytes }, nil},
	{"user-connections", "most open connections of one user to the daemon; 0: no limit", func(c *Config) any { return &c.UserConnections }, func(c *Config) error {
		return notBelow0(c.UserConnections)
	}},
	{"user-suites", "most suites with helpers of one user at a time; 0: no limit", func(c *Config) any { return &c.UserSuites }, func(c *Config) error {
		return notBelow0(c.UserSuites)
	}},
	{"user-helpers", "most helpers of one user's suites together; 0: no limit", func(c *Config) any { return &c.UserHelpers }, func(c *Config) error {
		return notBelow0(c.UserHelpers)
	}},
	{"user-volumes", "most volumes in one user's suites that are up; 0: no limit", func(c *Config) any { return &c.UserVolumes }, func(c *Config) error {
		return notBelow0(c.UserVolumes)
	}},
	{"high-priority", "who may use priority high: all, admins, or the names of users and groups; admins always may", func(c *Config) any { return &c.HighPriority }, func(c *Config) error {
		if c.HighPriority == "" {
			return errors.New("nobody named; write all, admins, or the names of users and groups")
		}
		return nil
	}},
	{"user-high", "most unfinished tasks of one user with priority high; 0: no limit", func(c *Config) any { return &c.UserHigh }, func(c *Config) error {
		return notBelow0(c.UserHigh)
	}},
}
