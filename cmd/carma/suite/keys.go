package suite

// verdict is what carma does with a key.
type verdict int

const (
	honoured verdict = iota // or checked where it is read, in translate.go
	warned
	refused
)

// rule is what carma does with a key of the Compose specification, and why.
// A key whose value says nothing (false, empty) is neither warned of nor
// refused.
type rule struct {
	verdict verdict
	why     string
	// below are the keys of the mapping, or of the mappings of the list, that
	// the value is. Without it the value is taken, or left, as a whole.
	below map[string]rule
	// named: the value is a mapping of names to mappings with the keys below.
	named bool
}

func ok() rule                          { return rule{} }
func okWith(below map[string]rule) rule { return rule{below: below} }
func warn(why string) rule              { return rule{verdict: warned, why: why} }
func refuse(why string) rule            { return rule{verdict: refused, why: why} }

const (
	noHostLimits = "of processors, memory and processes carma sets limits only: cpus, mem_limit, pids_limit"
	noPrivileges = "tasks get no extra privileges"
	noNetwork    = "tasks have no network of their own; theirs is the daemon's setting (carma daemon --network)"
	noNames      = "tasks do not find each other by name"
	noBind       = "carma mounts folders of the host only; write ./folder:/target"
	noSwarm      = "there is one machine and no rolling update"
	noSecrets    = "carma has none; mount a file, or use env_file"
	engineLogs   = "carma keeps the output; carma suite logs shows it"
)

// topKeys are the keys at the top of a Compose file.
var topKeys = map[string]rule{
	"name":     ok(),
	"services": ok(),
	"version":  warn("obsolete, it means nothing"),
	"include":  refuse("a suite is one file"),
	"networks": warn(noNetwork),
	"volumes":  warn("carma makes no volumes"),
	"secrets":  warn(noSecrets),
	"configs":  warn(noSecrets),
	"models":   warn("carma runs no model servers"),
}

// serviceKeys are the keys of a service.
var serviceKeys = map[string]rule{
	"image":              ok(),
	"build":              okWith(buildKeys),
	"command":            ok(),
	"entrypoint":         ok(),
	"environment":        ok(),
	"env_file":           okWith(map[string]rule{"path": ok(), "required": ok(), "format": ok()}),
	"working_dir":        ok(),
	"user":               ok(),
	"ipc":                ok(),
	"shm_size":           ok(),
	"cpus":               ok(),
	"mem_limit":          ok(),
	"pids_limit":         ok(),
	"volumes":            okWith(volumeKeys),
	"labels":             ok(),
	"label_file":         ok(),
	"profiles":           ok(),
	"extends":            okWith(map[string]rule{"service": ok(), "file": refuse("a suite is one file")}),
	"depends_on":         {below: map[string]rule{"condition": ok(), "required": ok(), "restart": warn("a task that has ended is not started again")}, named: true},
	"scale":              ok(),
	"deploy":             okWith(deployKeys),
	"gpus":               okWith(deviceKeys),
	"restart":            ok(),
	"stop_grace_period":  ok(),
	"stop_signal":        ok(),
	"pull_policy":        ok(),
	"pull_refresh_after": warn("an image is fetched when it is missing; always and never are the others"),
	"runtime":            ok(),
	"platform":           ok(),
	"network_mode":       ok(),
	"networks":           ok(),
	"security_opt":       ok(),

	"annotations":     warn("containers get carma's labels only"),
	"attach":          warn("carma shows the output of all"),
	"blkio_config":    warn(noHostLimits),
	"container_name":  warn("a task is called by its suite and its service"),
	"cpu_count":       warn(noHostLimits),
	"cpu_percent":     warn(noHostLimits),
	"cpu_period":      warn(noHostLimits),
	"cpu_quota":       warn(noHostLimits),
	"cpu_rt_period":   warn(noHostLimits),
	"cpu_rt_runtime":  warn(noHostLimits),
	"cpu_shares":      warn(noHostLimits),
	"cpuset":          warn(noHostLimits),
	"develop":         warn("it is for docker compose watch"),
	"expose":          warn("no port is opened"),
	"healthcheck":     warn("tasks are not asked for their health"),
	"init":            warn("the container's first process is the program itself"),
	"log_driver":      warn(engineLogs),
	"log_opt":         warn(engineLogs),
	"logging":         warn(engineLogs),
	"mem_reservation": warn(noHostLimits),
	"mem_swappiness":  warn(noHostLimits),
	"memswap_limit":   warn(noHostLimits),
	"oom_score_adj":   warn(noHostLimits),
	"ports":           warn("no port is published"),
	"read_only":       warn("a task can write in its container"),
	"stdin_open":      warn("tasks have no input"),
	"tty":             warn("tasks have no terminal"),
	"umask":           warn("files are made with the umask of the image's program"),
	"ulimits":         warn("they are the engine's"),

	"cap_add":             refuse(noPrivileges),
	"cap_drop":            refuse("a task has the engine's default capabilities; use an image that needs no more care"),
	"cgroup":              refuse(noPrivileges),
	"cgroup_parent":       refuse(noPrivileges),
	"configs":             refuse(noSecrets),
	"credential_spec":     refuse("it is for Windows"),
	"device_cgroup_rules": refuse(noPrivileges),
	"devices":             refuse("carma gives a task its GPUs and no other devices; see gpus"),
	"dns":                 refuse(noNetwork),
	"dns_opt":             refuse(noNetwork),
	"dns_search":          refuse(noNetwork),
	"dockerfile":          refuse("write it below build"),
	"domainname":          refuse(noNames),
	"external_links":      refuse(noNames),
	"extra_hosts":         refuse(noNetwork),
	"group_add":           refuse("a task has its user's group"),
	"hostname":            refuse(noNames),
	"isolation":           refuse("it is for Windows"),
	"links":               refuse(noNames),
	"mac_address":         refuse(noNetwork),
	"models":              refuse("carma runs no model servers"),
	"net":                 refuse(noNetwork),
	"oom_kill_disable":    refuse("carma must see that the host's memory ran out"),
	"pid":                 refuse(noPrivileges),
	"post_start":          refuse("carma runs the container's program only"),
	"pre_start":           refuse("carma runs the container's program only; a service of its own can come before it, with depends_on"),
	"pre_stop":            refuse("carma runs the container's program only; it gets the stop signal and stop_grace_period"),
	"privileged":          refuse(noPrivileges),
	"provider":            refuse("carma runs containers only"),
	"secrets":             refuse(noSecrets),
	"storage_opt":         refuse("they are the engine's"),
	"sysctls":             refuse(noPrivileges),
	"tmpfs":               refuse(noBind),
	"use_api_socket":      refuse(noPrivileges),
	"userns_mode":         refuse(noPrivileges),
	"uts":                 refuse(noPrivileges),
	"volume_driver":       refuse(noBind),
	"volumes_from":        refuse(noBind),
}

var deployKeys = map[string]rule{
	"mode":            ok(),
	"replicas":        ok(),
	"resources":       okWith(map[string]rule{"limits": okWith(limitKeys), "reservations": okWith(reservationKeys)}),
	"restart_policy":  okWith(map[string]rule{"condition": ok(), "max_attempts": ok(), "delay": warn("carma runs it again when it is its turn"), "window": warn("every run counts")}),
	"labels":          warn("they are a service's in a swarm; write them as labels of the service"),
	"update_config":   warn(noSwarm),
	"rollback_config": warn(noSwarm),
	"placement":       warn(noSwarm),
	"endpoint_mode":   warn(noNetwork),
}

var limitKeys = map[string]rule{
	"cpus": ok(), "memory": ok(), "pids": ok(),
	"devices":           refuse("GPUs are reserved; write it below reservations"),
	"generic_resources": refuse("GPUs are reserved by devices"),
}

var reservationKeys = map[string]rule{
	"cpus": warn(noHostLimits), "memory": warn(noHostLimits), "pids": warn(noHostLimits),
	"devices":           okWith(deviceKeys),
	"generic_resources": refuse("GPUs are reserved by devices"),
}

// deviceKeys are those of gpus and of reservations.devices.
var deviceKeys = map[string]rule{
	"capabilities": ok(), "driver": ok(), "count": ok(), "device_ids": ok(),
	"options": refuse("there are none that carma could pass on"),
}

var volumeKeys = map[string]rule{
	"type": ok(), "source": ok(), "target": ok(), "read_only": ok(),
	"consistency": warn("it is for other systems than Linux"),
	"bind": okWith(map[string]rule{
		"create_host_path": ok(), "propagation": ok(), "selinux": ok(),
		"recursive": refuse("what is mounted below the folder comes with it"),
	}),
	"volume": refuse(noBind), "tmpfs": refuse(noBind), "image": refuse(noBind),
}

var buildKeys = map[string]rule{
	"context": ok(), "dockerfile": ok(), "dockerfile_inline": ok(), "args": ok(), "target": ok(), "labels": ok(), "no_cache": ok(), "pull": ok(),
	"network": ok(), "shm_size": ok(), "tags": ok(),
	"cache_from": warn("the engine's own cache is used"), "cache_to": warn("the engine's own cache is used"), "no_cache_filter": warn("the engine's own cache is used"),
	"provenance": warn("carma makes no attestations"), "sbom": warn("carma makes no attestations"),
	"ulimits":             warn("they are the engine's"),
	"platforms":           warn("it is built for this machine"),
	"ssh":                 refuse(onlyDockerfile),
	"secrets":             refuse(onlyDockerfile),
	"additional_contexts": refuse(onlyDockerfile),
	"entitlements":        refuse(onlyDockerfile),
	"privileged":          refuse(onlyDockerfile),
	"isolation":           refuse(onlyDockerfile),
	"extra_hosts":         refuse(onlyDockerfile),
}

const onlyDockerfile = "carma builds a folder with a Dockerfile by the engine's own builder; build it yourself and write image"
