package suite

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"carma/configs/taskfile"
	"carma/runner/api"
)

// translator turns services into tasks.
type translator struct {
	*checker
	project *types.Project
	options Options
	err     error // the first of x-carma
}

func (t *translator) refuseAt(service, why string, keys ...string) {
	line, key := t.at(service, keys...)
	t.refuse(line, key, why)
}

func (t *translator) warnAt(service, why string, keys ...string) {
	line, key := t.at(service, keys...)
	t.warn(line, key, why)
}

// add adds a service.
func (t *translator) add(s *Suite, c types.ServiceConfig) {
	_, line := t.find("services", c.Name)
	service := Service{Name: c.Name, Task: taskfile.Task{Line: line}, Replicas: c.GetScale()}
	r := &service.Submit
	r.Part, r.Image, r.ShmSize = c.Name, c.Image, int64(c.ShmSize)
	r.Command, r.Entrypoint = []string(c.Command), []string(c.Entrypoint)
	if len(c.Labels) > 0 {
		r.Labels = maps.Clone(map[string]string(c.Labels))
	}
	if c.StopGracePeriod != nil {
		// 0 would mean the daemon's: kill as good as at once.
		r.StopGrace = max(time.Nanosecond, time.Duration(*c.StopGracePeriod))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		if value := c.Environment[name]; value != nil {
			r.Env = append(r.Env, name+"="+*value)
		}
	}
	t.visible(c)
	t.words(c, r)
	t.names(c, r)
	t.container(c, r)
	t.volumes(c, &service)
	t.build(c, &service)
	t.dependencies(c, r)
	t.limits(c, r)
	t.retries(c, r)
	t.extension(c, &service)
	t.gpus(c, &service)
	if service.Replicas < 0 || service.Replicas > api.MaxTasks {
		t.refuseAt(c.Name, fmt.Sprintf("%d replicas; from 0 to %d can be", service.Replicas, api.MaxTasks), "scale")
		return
	}
	s.Services = append(s.Services, service)
}

// visible tells that a choice of GPUs in the environment is carma's to make.
func (t *translator) visible(c types.ServiceConfig) {
	if _, given := c.Environment["NVIDIA_VISIBLE_DEVICES"]; given {
		t.warnAt(c.Name, "carma sets NVIDIA_VISIBLE_DEVICES to the GPUs of the task; gpus is how many", "environment")
	}
	if _, given := c.Environment["CUDA_VISIBLE_DEVICES"]; given {
		line, key := t.at(c.Name, "environment")
		t.say(line, key, "CUDA_VISIBLE_DEVICES counts the GPUs of the task, from 0, and not those of the machine")
	}
}

// words checks the command and the entrypoint.
func (t *translator) words(c types.ServiceConfig, r *api.Submit) {
	if c.Entrypoint != nil && len(c.Entrypoint) == 0 {
		r.Entrypoint = []string{""}
	}
	if c.Command != nil && len(c.Command) == 0 && t.has(c.Name, "command") && len(c.Entrypoint) == 0 {
		t.refuseAt(c.Name, "carma cannot take away the image's command; give one, or an entrypoint", "command")
	}
	r.WorkDir = c.WorkingDir
	if r.WorkDir != "" && r.WorkDir[0] != '/' {
		t.refuseAt(c.Name, r.WorkDir+" is not absolute; it is a folder in the container", "working_dir")
		r.WorkDir = ""
	}
}

// names checks the name of the image and of the service.
func (t *translator) names(c types.ServiceConfig, r *api.Submit) {
	if len(c.Name) > 64 {
		line, key := t.at(c.Name)
		t.refuse(line, key, "a name may have 64 characters")
	}
	switch policy := c.PullPolicy; {
	case policy == "" || policy == types.PullPolicyBuild:
	case policy == types.PullPolicyIfNotPresent:
		r.Pull = "missing"
	case slices.Contains([]string{"missing", "always", "never"}, policy):
		r.Pull = policy
	default:
		t.warnAt(c.Name, "an image is fetched when it is missing; always and never are the others", "pull_policy")
		r.Pull = "missing"
	}
}

// container checks what a task has or is given anyway.
func (t *translator) container(c types.ServiceConfig, r *api.Submit) {
	t.user(c, r)
	switch c.Ipc {
	case "", "private", "shareable":
	case "host":
		t.refuseAt(c.Name, "a task has its own; for a larger /dev/shm write shm_size: 8g", "ipc")
	default:
		t.refuseAt(c.Name, "a task has its own; private is the one that can be", "ipc")
	}
	if c.StopSignal != "" && strings.TrimPrefix(c.StopSignal, "SIG") != "TERM" && c.StopSignal != "15" {
		t.refuseAt(c.Name, "the stop signal is the image's; write STOPSIGNAL into its Dockerfile", "stop_signal")
	}
	if c.Runtime != "" && c.Runtime != "nvidia" {
		t.refuseAt(c.Name, "the runtime is the daemon's setting; nvidia is the one that GPUs may need", "runtime")
	}
	if here := "linux/" + runtime.GOARCH; c.Platform != "" && c.Platform != here && c.Platform != "linux" {
		t.refuseAt(c.Name, "this machine is "+here, "platform")
	}
	if m := c.NetworkMode; m != "" && m != "bridge" && m != "default" {
		t.refuseAt(c.Name, noNetwork, "network_mode")
	} else if m != "" {
		t.warnAt(c.Name, noNetwork, "network_mode")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		if name != "default" {
			t.refuseAt(c.Name, noNames+": "+noNetwork, "networks")
			break
		}
	}
	if n := c.Networks["default"]; n != nil {
		t.warnAt(c.Name, noNetwork, "networks")
	}
	for _, o := range c.SecurityOpt {
		if o = strings.ReplaceAll(o, "=", ":"); o != "no-new-privileges" && o != "no-new-privileges:true" {
			t.refuseAt(c.Name, "every task has no-new-privileges:true and nothing else", "security_opt")
		}
	}
}

// user passes on whom a task runs as; who is not root runs tasks as himself.
func (t *translator) user(c types.ServiceConfig, r *api.Submit) {
	uid := strconv.Itoa(t.options.UID)
	switch own := uid + ":" + strconv.Itoa(t.options.GID); {
	case c.User == "":
	case t.options.UID == 0:
		r.User = c.User
	case c.User != uid && c.User != own:
		t.refuseAt(c.Name, "a task runs as you, "+own, "user")
	}
}

// conditions are Compose's, as carma has them.
var conditions = map[string]string{
	types.ServiceConditionStarted:               "started",
	types.ServiceConditionCompletedSuccessfully: "ok",
}

func (t *translator) dependencies(c types.ServiceConfig, r *api.Submit) {
	for _, name := range t.services() {
		d, waits := c.DependsOn[name]
		if !waits {
			continue
		}
		of, runs := t.project.Services[name]
		condition, known := conditions[d.Condition]
		switch {
		case !known:
			t.refuseAt(c.Name, fmt.Sprintf("%s cannot be waited for, tasks are not asked for their health; service_started and service_completed_successfully can", d.Condition), "depends_on", name, "condition")
		case !runs && !d.Required:
		case !runs:
			t.refuseAt(c.Name, name+" does not run: it belongs to a profile that is not chosen; use --profile", "depends_on", name)
		case of.GetScale() == 0:
			t.refuseAt(c.Name, name+" does not run: it has no replicas", "depends_on", name)
		default:
			r.After = append(r.After, api.Dependency{Part: name, Condition: condition})
		}
	}
}

// retries reads how often a service that fails is run again.
func (t *translator) retries(c types.ServiceConfig, r *api.Submit) {
	policy, limit, _ := strings.Cut(c.Restart, ":")
	keys := []string{"restart"}
	if d := c.Deploy; d != nil && d.RestartPolicy != nil {
		keys = []string{"deploy", "restart_policy"}
		policy, limit = cmp.Or(d.RestartPolicy.Condition, "any"), ""
		if d.RestartPolicy.MaxAttempts != nil {
			limit = strconv.FormatUint(*d.RestartPolicy.MaxAttempts, 10)
		}
	}
	switch policy {
	case "", "no", "none":
	case "on-failure":
		n, err := strconv.Atoi(limit)
		switch {
		case limit == "":
			t.refuseAt(c.Name, "for ever is not possible; say how often: on-failure:3, or max_attempts: 3", keys...)
		case err != nil || n < 0 || n > 1e9:
			t.refuseAt(c.Name, fmt.Sprintf("%q is not a number of times", limit), keys...)
		default:
			r.Retries = n
		}
	default:
		t.warnAt(c.Name, "a task that has ended is not started again; on-failure:3 runs one again that failed", keys...)
	}
}

// ownKeys are keys of a task that Compose has its own for.
var ownKeys = []string{"image", "command", "entrypoint", "env", "env-file", "volumes", "labels", "after"}

// extensionKeys are what x-carma may say: all that a task file may, but for what
// Compose itself says.
var extensionKeys = slices.DeleteFunc(taskfile.Keys(), func(key string) bool { return slices.Contains(ownKeys, key) })

// extension reads x-carma, of the file and of the service, over what Compose's
// own keys say.
func (t *translator) extension(c types.ServiceConfig, s *Service) {
	given := s.Task
	read := func(path ...string) {
		if n, _ := t.find(path...); n != nil && t.err == nil {
			given, t.err = taskfile.Settings(t.file, n, strings.Join(path, "."), extensionKeys, given)
		}
	}
	read(Extension)
	for _, name := range slices.Backward(t.lineage(c.Name)) {
		read("services", name, Extension)
	}
	if t.err != nil {
		return
	}
	s.Task = given
	checked := given
	if s.Replicas > 1 {
		checked.Submit.Parallel = 0 // of the replicas
	}
	checked.Submit.Image = cmp.Or(checked.Submit.Image, "built") // it may be made of the service
	if wrong := checked.Check(); wrong != nil {
		t.refuseAt(c.Name, wrong.Text, Extension, wrong.Field)
	}
	if several := len(s.Array.Indices) > 0 || len(s.Sweep) > 0; several && s.Replicas > 1 {
		t.refuseAt(c.Name, "it has replicas as well; leave one of them out", Extension)
	}
}
