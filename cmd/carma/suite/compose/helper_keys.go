package compose

import "maps"

const (
	asIs      = "it has no meaning on one machine"
	noHook    = "carma runs the container's program only"
	ownChoice = "the engine chooses"

	ownServers = ownChoice + " name servers; names of the suite are found anyway"
)

// over returns a table with other rules for some keys.
func over(rules, other map[string]rule) map[string]rule {
	all := maps.Clone(rules)
	maps.Copy(all, other)
	return all
}

// taskKeys are the keys of a service that becomes tasks, helperKeys of a service that
// becomes a helper. helperKeys add the needs of a long-lived container.
var (
	taskKeys = over(bothKeys, map[string]rule{
		"cap_add":  ok(),
		"cap_drop": warn("a task has few capabilities already"),
		"sysctls":  warn("a task has the machine's; a helper can have others"),
	})
	bothKeys = over(serviceKeys, map[string]rule{
		"configs":          okWith(fileKeys),
		"dns":              warn(ownServers),
		"dns_opt":          warn(ownServers),
		"dns_search":       warn(ownServers),
		"domainname":       warn("services find each other by their names"),
		"external_links":   warn("services of other suites are found in a network that both share"),
		"extra_hosts":      ok(),
		"links":            ok(),
		"mac_address":      warn(ownChoice + " it"),
		"networks":         named(placeKeys),
		"oom_kill_disable": warn("its limit of memory stays"),
		"secrets":          okWith(fileKeys),
		"storage_opt":      warn("carma does not limit disks; the administrator can, for all containers"),
	})
	helperKeys = over(bothKeys, map[string]rule{
		"cap_add":        ok(),
		"cap_drop":       ok(),
		"container_name": ok(),
		"depends_on":     named(map[string]rule{"condition": ok(), "required": ok(), "restart": warn("the engine restarts a helper by itself only")}),
		"devices":        refuse("a helper gets no devices of the machine; a task gets those that the administrator allows"),
		"expose":         ok(), // all ports are open in the suite's networks
		"group_add":      ok(),
		"healthcheck":    okWith(map[string]rule{"test": ok(), "interval": ok(), "timeout": ok(), "retries": ok(), "start_period": ok(), "disable": ok(), "start_interval": warn("the interval counts from the start on")}),
		"hostname":       ok(),
		"init":           ok(),
		"ports":          okWith(map[string]rule{"target": ok(), "published": ok(), "host_ip": ok(), "protocol": ok(), "mode": ok(), "name": ok(), "app_protocol": ok()}),
		"post_start":     refuse(noHook),
		"pre_start":      refuse(noHook + "; a service of its own can come before it, with depends_on"),
		"pre_stop":       refuse(noHook + "; it gets the stop signal and stop_grace_period"),
		"read_only":      ok(),
		"stdin_open":     ok(),
		"sysctls":        ok(),
		"tmpfs":          ok(),
		"tty":            ok(),
		"ulimits":        ok(),
		"deploy":         okWith(helperDeploy),
	})
	helperDeploy = over(deployKeys, map[string]rule{
		"resources":      okWith(map[string]rule{"limits": okWith(limitKeys), "reservations": okWith(reservationKeys)}),
		"restart_policy": okWith(map[string]rule{"condition": ok(), "max_attempts": ok(), "delay": warn("the engine waits longer each time"), "window": warn("every run counts")}),
		"endpoint_mode":  warn(asIs),
	})
)

// named returns the rule for a mapping of names to mappings with these keys.
func named(below map[string]rule) rule { return rule{below: below, named: true} }

var placeKeys = map[string]rule{
	"aliases": ok(), "priority": ok(), "gw_priority": ok(), "use_service_name_alias": ok(),
	"driver_opts": warn(ownChoice + " them"), "interface_name": warn(ownChoice + " it"), "mac_address": warn(ownChoice + " it"), "link_local_ips": warn(ownChoice + " addresses"),
	"ipv4_address": refuse(noAddress), "ipv6_address": refuse(noAddress),
}

const noAddress = "addresses are the engine's to choose, because one of your choice could hide a machine of the real network; use the service's name"

var fileKeys = map[string]rule{"source": ok(), "target": ok(), "uid": ok(), "gid": ok(), "mode": ok()}
