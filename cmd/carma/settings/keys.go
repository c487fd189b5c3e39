package settings

import (
	"slices"

	"carma/internal/lazyregexp"
	"carma/internal/units"
	"carma/mapper/rules"
)

// key is one setting: its name in files and flags, its usage text, its field and
// its check.
type key struct {
	name  string
	usage string
	// at returns a pointer to the field.
	at func(*Config) any
	// check refuses a value of the field, or is nil if every value of the type is valid.
	// [together] contains the rules between keys.
	check func(*Config) error
}

// setting returns the key of a field. check, if given, refuses a value.
func setting[T any](name, usage string, at func(*Config) *T, check ...func(T) error) key {
	k := key{name: name, usage: usage, at: func(c *Config) any { return at(c) }}
	if len(check) > 0 {
		k.check = func(c *Config) error { return check[0](*at(c)) }
	}
	return k
}

// keys lists the keys in the order of the documentation and of carma config.
var keys = slices.Concat(hostKeys, taskKeys, mapperKeys(), []key{
	setting("log-level", "least important messages in the log: debug, info, warn or error", func(c *Config) *string { return &c.LogLevel }, rules.Among("log level", LogLevels)),
	setting("log-format", "format of the log: auto, console or json", func(c *Config) *string { return &c.LogFormat }, rules.Among("log format", LogFormats)),
})

// mapperKeys returns the keys of the mapper's options.
func mapperKeys() []key {
	all := make([]key, len(rules.Keys))
	for i, k := range rules.Keys {
		all[i] = key{name: k.Name, usage: k.Usage, at: func(c *Config) any { return k.At(&c.Mapper) }}
		if k.Check != nil {
			all[i].check = func(c *Config) error { return k.Check(&c.Mapper) }
		}
	}
	return all
}

// The allowed values of keys with a fixed choice.
var (
	Activities       = []string{"mean", "risk"}
	Drivers          = []string{"docker", "containerd", "kubernetes"}
	ProcessorChoices = []string{"any", "near"}
	SuspendChoices   = []string{"auto", "here", "move", "off"}
	Attachments      = []string{"auto", "device-request", "runtime", "cdi", "simulated"}
	MPSGroups        = []string{"auto", "off", "user", "shared"}
	MPSIPCs          = []string{"private", "host"}
	// Allowed values of memory-limit and memory-caps.
	MemoryLimits = []string{"auto", "driver", "mps", "off"}
	MemoryCaps   = []string{"growth", "fractions", "off"}
	Probes       = []string{"asked", "unknown", "never"}
	Visibilities = []string{"private", "open"}
	PullRules    = []string{"missing", "always", "never"}
	LogLevels    = []string{"debug", "info", "warn", "error"}
	LogFormats   = []string{"auto", "console", "json"}
)

var namespaceName = lazyregexp.New(`^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$`)

// kubernetesName matches a name in a cluster.
var kubernetesName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// firstKeys lists the most important keys when a server is set up. The other keys have
// defaults that few people need to change.
var firstKeys = []string{
	"data-dir", "gpus", "driver", "attach", "policy", "mps", "memory-limit", "probe", "pull", "admin-group", "allowed-mounts", "visibility",
	"host-mem", "cpus", "quota-tasks", "quota-gpus", "output-total", "keep-tasks-for", "log-level",
}

// Keys returns the names of all settings in their documented order.
func Keys() []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

func find(name string) (key, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return keys[i], true
}

// output refuses limits that are too small for any output.
var output = rules.OrNone(rules.AtLeast(units.MiB, "%d bytes is too small; write for example 10G, or 0 for the default"))
