package compose

import "carma/configs/dockerflags"

// verdict is carma's treatment of a key.
type verdict int

const (
	honoured verdict = iota // or checked by the code that reads the key, in translate.go
	warned
	refused
)

// rule is carma's treatment of a key of the Compose specification, and the reason. A
// value that requests nothing (false, empty) causes neither a warning nor a refusal.
type rule struct {
	verdict verdict
	why     string
	// below contains the rules for nested keys, if the value is a mapping or a list of
	// mappings. If nil, the value is treated as a whole.
	below map[string]rule
	// named is set if the value maps names to mappings with the keys below.
	named bool
}

func ok() rule                          { return rule{} }
func okWith(below map[string]rule) rule { return rule{below: below} }
func warn(why string) rule              { return rule{verdict: warned, why: why} }
func refuse(why string) rule            { return rule{verdict: refused, why: why} }

// alike adds rules for keys that mean the same as flags of docker run that carma lacks,
// with the flags' messages.
func alike(rules map[string]rule) map[string]rule {
	for _, f := range dockerflags.All() {
		for _, key := range f.Keys {
			switch f.Verdict {
			case dockerflags.Left:
				rules[key] = warn(f.ForKeys())
			case dockerflags.Refused:
				rules[key] = refuse(f.ForKeys())
			}
		}
	}
	return rules
}

const (
	noHostLimits = "carma only limits processors, memory and processes: write cpus, mem_limit, pids_limit"
	noNetwork    = "tasks have no network of their own; theirs is the daemon's setting (carma daemon --network)"
	noNames      = "tasks do not find each other by name"
	noBind       = "carma mounts folders of the host only; write ./folder:/target"
	noSwarm      = "there is one machine and no rolling update"
	noTerminal   = "x-carma: {tty: true, interactive: true} gives a task a terminal for carma attach"
)

// topKeys are the keys at the top of a Compose file.
var topKeys = map[string]rule{
	"name":     ok(),
	"services": ok(),
	"version":  warn("obsolete, it means nothing"),
	"include":  ok(),
	"networks": ok(),
	"volumes":  ok(),
	"secrets":  ok(),
	"configs":  ok(),
	"models":   warn("carma runs no model servers"),
}

// serviceKeys are the keys of a service. Package dockerflags contains the flags of docker
// run that carma lacks.
var serviceKeys = alike(map[string]rule{
	"image":              ok(),
	"build":              okWith(buildKeys),
	"command":            ok(),
	"entrypoint":         ok(),
	"environment":        ok(),
	"env_file":           okWith(map[string]rule{"path": ok(), "required": ok(), "format": ok()}),
	"working_dir":        ok(),
	"user":               ok(),
	"ipc":                ok(),
	"init":               ok(),
	"hostname":           ok(),
	"group_add":          ok(),
	"devices":            ok(),
	"tmpfs":              ok(),
	"ulimits":            ok(),
	"ports":              ok(),
	"shm_size":           ok(),
	"cpus":               ok(),
	"mem_limit":          ok(),
	"mem_reservation":    ok(),
	"pids_limit":         ok(),
	"volumes":            okWith(volumeKeys),
	"labels":             ok(),
	"label_file":         ok(),
	"profiles":           ok(),
	"extends":            okWith(map[string]rule{"service": ok(), "file": ok()}),
	"depends_on":         {below: map[string]rule{"condition": ok(), "required": ok(), "restart": warn("a task that has ended is not started again")}, named: true},
	"scale":              ok(),
	"deploy":             okWith(deployKeys),
	"gpus":               okWith(deviceKeys),
	"restart":            ok(),
	"stop_grace_period":  ok(),
	"stop_signal":        ok(),
	"pull_policy":        ok(),
	"pull_refresh_after": warn("the image is fetched if it is missing; the other choices are always and never"),
	"runtime":            ok(),
	"platform":           ok(),
	"network_mode":       ok(),
	"networks":           ok(),
	"security_opt":       ok(),

	"stdin_open":     warn(noTerminal),
	"tty":            warn(noTerminal),
	"container_name": warn("a task is called by its suite and its service"),
	"develop":        warn("it is for docker compose watch"),
	"umask":          warn("files are made with the umask of the image's program"),

	"configs":         ok(),
	"credential_spec": refuse("it is for Windows"),
	"dockerfile":      refuse("write it below build"),
	"models":          refuse("carma runs no model servers"),
	"post_start":      refuse("carma runs the container's program only"),
	"pre_start":       refuse("carma runs the container's program only; a service of its own can come before it, with depends_on"),
	"pre_stop":        refuse("carma runs the container's program only; it gets the stop signal and stop_grace_period"),
	"provider":        refuse("carma runs containers only"),
	"secrets":         ok(),
})

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
	"cpus": ok(), "memory": ok(), "pids": warn(noHostLimits),
	"devices":           okWith(deviceKeys),
	"generic_resources": refuse("GPUs are reserved by devices"),
}

// deviceKeys are the keys of gpus and of reservations.devices.
var deviceKeys = map[string]rule{
	"capabilities": ok(), "driver": ok(), "count": ok(), "device_ids": ok(),
	"options": warn("NVIDIA's driver takes none"),
}

var volumeKeys = map[string]rule{
	"type": ok(), "source": ok(), "target": ok(), "read_only": ok(),
	"consistency": warn("it is for other systems than Linux"),
	"bind": okWith(map[string]rule{
		"create_host_path": ok(), "propagation": ok(), "selinux": ok(),
		"recursive": refuse("what is mounted below the folder comes with it"),
	}),
	"volume": okWith(map[string]rule{
		"nocopy": ok(), "labels": warn("a volume has carma's labels only"),
		"subpath": refuse("a volume is mounted whole; make one for each folder"),
	}),
	"tmpfs": okWith(map[string]rule{"size": ok(), "mode": ok()}),
	"image": refuse("an image cannot be mounted; copy from it in a Dockerfile"),
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
