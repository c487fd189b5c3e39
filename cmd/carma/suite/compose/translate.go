package compose

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

	"carma/cmd/carma/taskfile"
	"carma/runner/api"
)

// translator turns services into tasks.
type translator struct {
	*checker
	project *types.Project
	options Options
	env     map[string]string
	isTask  map[string]bool // whether an active service is a task
	follows []string        // services that are tasks only because they wait for a task's end
	err     error           // the first error in x-carma
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
	service := t.common(c)
	r := &service.Submit
	t.words(c, r)
	t.names(c, r)
	t.container(c, r)
	joined := t.volumes(c, &service)
	t.build(c, &service)
	t.dependencies(c, s, r)
	t.limits(c, r)
	t.retries(c, r)
	t.extension(c, &service)
	t.gpus(c, &service)
	if service.Replicas < 0 || service.Replicas > api.MaxTasks {
		t.refuseAt(c.Name, fmt.Sprintf("%d replicas; from 0 to %d can be", service.Replicas, api.MaxTasks), "scale")
		return
	}
	t.files(c, &joined)
	joined.Networks = t.joins(c)
	if of, shares := strings.CutPrefix(c.NetworkMode, "service:"); shares {
		t.refuseAt(c.Name, "a task starts when it is its turn, and "+of+" may have started again by then; leave network_mode out and reach it by its name, for example http://"+of+":8000", "network_mode")
	}
	s.join(c.Name, joined)
	s.Services = append(s.Services, service)
}

// common translates the keys that tasks and helpers share.
func (t *translator) common(c types.ServiceConfig) Service {
	_, line := t.find("services", c.Name)
	_, line = t.place(line)
	service := Service{Name: c.Name, Task: taskfile.Task{Line: line}, Replicas: c.GetScale()}
	r := &service.Submit
	r.Part, r.Image, r.ShmSize = c.Name, c.Image, int64(c.ShmSize)
	r.Command, r.Entrypoint = []string(c.Command), []string(c.Entrypoint)
	if len(c.Labels) > 0 {
		r.Labels = maps.Clone(map[string]string(c.Labels))
	}
	if c.StopGracePeriod != nil {
		// 0 stands for the daemon's default, so the shortest grace period is used instead.
		r.StopGrace = max(time.Nanosecond, time.Duration(*c.StopGracePeriod))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		if value := c.Environment[name]; value != nil {
			r.Env = append(r.Env, name+"="+*value)
		}
	}
	return service
}

// words checks the command and the entrypoint.
func (t *translator) words(c types.ServiceConfig, r *api.Submit) {
	if c.Entrypoint != nil && len(c.Entrypoint) == 0 {
		r.Entrypoint = []string{""}
	}
	if c.Command != nil && len(c.Command) == 0 && t.has(c.Name, "command") && len(c.Entrypoint) == 0 {
		t.refuseAt(c.Name, "carma cannot remove the image's command; give another one, or an entrypoint", "command")
	}
	r.WorkDir = c.WorkingDir
	if r.WorkDir != "" && r.WorkDir[0] != '/' {
		t.refuseAt(c.Name, r.WorkDir+" is not absolute; it is a folder in the container", "working_dir")
		r.WorkDir = ""
	}
}

// names checks the names of the image and of the service.
func (t *translator) names(c types.ServiceConfig, r *api.Submit) {
	if len(c.Name) > 64 {
		line, key := t.at(c.Name)
		t.refuse(line, key, "a name may have at most 64 characters")
	}
	switch policy := c.PullPolicy; {
	case policy == "" || policy == types.PullPolicyBuild:
	case policy == types.PullPolicyIfNotPresent:
		r.Pull = "missing"
	case slices.Contains([]string{"missing", "always", "never"}, policy):
		r.Pull = policy
	default:
		t.warnAt(c.Name, "the image is fetched if it is missing; the other choices are always and never", "pull_policy")
		r.Pull = "missing"
	}
}

// container checks keys that carma sets for every task, or for no task.
func (t *translator) container(c types.ServiceConfig, r *api.Submit) {
	t.user(c, r)
	t.fit(c, r)
	if c.Runtime != "" && !isNVIDIA(c.Runtime) {
		t.refuseAt(c.Name, "the runtime is the daemon's setting; nvidia is the one that GPUs may need", "runtime")
	}
	t.platform(c)
	t.security(c)
	t.capabilities(c, nil)
}

// security checks security options. Options that disable the engine's own rules are
// ignored: most programs run with these rules.
func (t *translator) security(c types.ServiceConfig) {
	for _, o := range c.SecurityOpt {
		switch o = strings.ReplaceAll(o, "=", ":"); {
		case o == "no-new-privileges", o == "no-new-privileges:true", strings.HasPrefix(o, "label:"):
		case strings.HasPrefix(o, "seccomp:"), strings.HasPrefix(o, "apparmor:"):
			t.warnAt(c.Name, "the engine's own rules stay; most programs go on with them", "security_opt")
		default:
			t.refuseAt(c.Name, o+" takes a wall down; there are no-new-privileges:true and the engine's own rules", "security_opt")
		}
	}
}

// platform refuses images for other platforms.
func (t *translator) platform(c types.ServiceConfig) {
	here := "linux/" + runtime.GOARCH
	asked := strings.Replace(strings.Replace(c.Platform, "x86_64", "amd64", 1), "aarch64", "arm64", 1)
	if asked != "" && asked != here && asked != "linux" && asked != runtime.GOARCH {
		t.refuseAt(c.Name, "this machine is "+here, "platform")
	}
}

// user sets the user of a task. Only root may choose another user. A task of any other
// submitter runs as the submitter, even if the image sets a user.
func (t *translator) user(c types.ServiceConfig, r *api.Submit) {
	uid := strconv.Itoa(t.options.UID)
	switch own := uid + ":" + strconv.Itoa(t.options.GID); {
	case c.User == "":
	case t.options.UID == 0:
		r.User = c.User
	case c.User != uid && c.User != own:
		t.warnAt(c.Name, "a task runs as you, "+own, "user")
	}
}

// conditions maps Compose's conditions to carma's.
var conditions = map[string]string{
	types.ServiceConditionStarted:               "started",
	types.ServiceConditionHealthy:               "healthy",
	types.ServiceConditionCompletedSuccessfully: "ok",
}

// dependencies reads a task's dependencies. Helpers come before all tasks.
func (t *translator) dependencies(c types.ServiceConfig, s *Suite, r *api.Submit) {
	for _, d := range t.comesAfter(c) {
		switch {
		case !t.isTask[d.of]:
			s.await(api.HelperWait{Helper: d.of, Condition: d.condition})
			continue
		case d.condition == "healthy":
			t.warnAt(c.Name, "tasks are not asked for their health; it waits until "+d.of+" has started", "depends_on", d.of, "condition")
			d.condition = "started"
		}
		r.After = append(r.After, api.Dependency{Part: d.of, Condition: d.condition})
	}
}

// dependency is a service that another service waits for.
type dependency struct{ of, condition string }

// comesAfter lists the active services that a service waits for.
func (t *translator) comesAfter(c types.ServiceConfig) (all []dependency) {
	for _, name := range t.services() {
		d, waits := c.DependsOn[name]
		if !waits {
			continue
		}
		of, runs := t.project.Services[name]
		condition, known := conditions[d.Condition]
		switch {
		case !known:
			t.refuseAt(c.Name, fmt.Sprintf("%q; write service_started, service_healthy or service_completed_successfully", d.Condition), "depends_on", name, "condition")
		case !runs && !d.Required:
		case !runs:
			t.refuseAt(c.Name, name+" does not run: it belongs to a profile that is not chosen; use --profile", "depends_on", name)
		case of.GetScale() == 0 && !d.Required:
		case of.GetScale() == 0:
			t.refuseAt(c.Name, name+" does not run: it has no replicas", "depends_on", name)
		default:
			all = append(all, dependency{name, condition})
		}
	}
	return all
}

// ownRetries is the number of reruns of a failing task whose restart policy has no
// number: Compose would rerun it without limit.
const ownRetries = 3

// retries reads the number of reruns of a failing service.
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
			line, key := t.at(c.Name, keys...)
			t.say(line, key, fmt.Sprintf("it does not say how often; a failed task is run again %d times; on-failure:10, or max_attempts: 10, is another number", ownRetries))
			r.Retries = ownRetries
		case err != nil || n < 0 || n > 1e9:
			t.refuseAt(c.Name, fmt.Sprintf("%q is not a number of times", limit), keys...)
		default:
			r.Retries = n
		}
	default:
		t.warnAt(c.Name, "a task that has ended is not started again; on-failure:3 runs a failed one again", keys...)
	}
}

// ownKeys lists keys of a task for which Compose has its own keys.
var ownKeys = []string{"image", "command", "entrypoint", "env", "env-file", "volumes", "labels", "after"}

// extensionKeys lists the keys that x-carma may have: the keys of a task file, without
// ownKeys.
var extensionKeys = slices.DeleteFunc(taskfile.Keys(), func(key string) bool { return slices.Contains(ownKeys, key) })

// extension reads x-carma of the file and of the service. Its values override the values
// of Compose's own keys.
func (t *translator) extension(c types.ServiceConfig, s *Service) {
	given := s.Task
	read := func(keys []string, path ...string) {
		if n, _ := t.find(path...); n != nil && t.err == nil {
			given, t.err = taskfile.Settings(t.file, withoutKind(n), keyText(path), keys, given)
			t.err = t.placedIn(t.err)
		}
	}
	keys := extensionKeys
	if s.Helper != nil {
		keys = helperExtension
	} else {
		read(keys, Extension)
	}
	for _, path := range slices.Backward(t.lineage(c.Name)) {
		read(keys, append(slices.Clone(path), Extension)...)
	}
	if t.err != nil {
		return
	}
	if given.Submit.Bare() { // the image comes from Compose's keys
		given.Submit.Image, given.Submit.Pull, s.Build = "", "", nil
	}
	s.Task = given
	checked := given
	if s.Replicas > 1 {
		checked.Submit.Parallel = 0 // Parallel limits the replicas here
	}
	if !s.Submit.Bare() {
		checked.Submit.Image = cmp.Or(checked.Submit.Image, "built") // the image may be built for the service
	}
	if wrong := checked.Check(); wrong != nil {
		t.refuseAt(c.Name, wrong.Text, Extension, wrong.Field)
	}
	if several := len(s.Array.Indices) > 0 || len(s.Sweep) > 0; several && s.Replicas > 1 {
		t.refuseAt(c.Name, "it has replicas as well; leave one of them out", Extension)
	}
}
