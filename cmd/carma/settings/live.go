package settings

import (
	"carma/mapper/rules"
	"reflect"
	"slices"
)

// liveKeys can change while the daemon runs, like all keys of the mapper.
var liveKeys = []string{
	"pull", "stop-grace", "allowed-mounts", "allowed-devices", "allowed-ulimits", "host-tasks", "host-folders", "admin-group", "kubernetes-admins", "visibility", "oom-texts",
	"user-tasks", "user-bytes", "user-high", "user-connections", "high-priority",
	"host-mem", "max-host-mem", "all-host-mem", "cpus", "max-cpus", "all-cpus", "pids", "max-pids", "shm-size", "max-shm-size",
	"helper-host-mem", "helper-reserve", "helper-cpus", "user-suites", "user-helpers", "user-volumes",
	"log-bytes", "output-task", "output-user", "output-total", "output-free",
	"keep-tasks", "keep-tasks-for", "keep-output-for", "probe", "probe-timeout", "probe-memory", "notify",
}

// Live reports whether a key can change while the daemon runs.
func Live(name string) bool {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	return i >= 0 && (slices.Contains(liveKeys, name) || keys[i].ofMapper())
}

// ofMapper reports whether a key is one of the mapper's options.
func (k key) ofMapper() bool {
	var c Config
	at, options := reflect.ValueOf(k.at(&c)).Pointer(), reflect.ValueOf(&c.Mapper)
	return at >= options.Pointer() && at < options.Pointer()+options.Elem().Type().Size()
}

// Changes lists the keys in which two configurations differ: live lists the keys that can
// change while the daemon runs, restart the keys that need a restart.
func Changes(from, to Config) (live, restart []string) {
	for _, k := range keys {
		switch {
		case rules.Format(k.at(&from)) == rules.Format(k.at(&to)):
		case Live(k.name):
			live = append(live, k.name)
		default:
			restart = append(restart, k.name)
		}
	}
	return live, restart
}

// Taken returns have with next's values of all keys that can change while the daemon
// runs.
func Taken(have, next Config) Config {
	for _, k := range keys {
		if Live(k.name) {
			reflect.ValueOf(k.at(&have)).Elem().Set(reflect.ValueOf(k.at(&next)).Elem())
		}
	}
	return have
}
