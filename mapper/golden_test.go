package mapper_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/rules"
	"carma/mapper/words"
)

// TestStories plays the stories of testdata/stories: events in, decisions out. UPDATE=1
// rewrites the decisions; read the difference before you keep it.
//
// A line is a comment (#), a decision (>), or an event with the time since the
// beginning before it. The first events are rules and gpus:
//
//	0s  rules POLICY [KEY=VALUE...]   as carma config has them; a second time: the daemon is configured again
//	0s  gpus NxSIZE[/time-slicing]... [boot=NAME]   these are found, in that boot of the machine
//	0s  change NAME [mem=SIZE] [host-mem=SIZE] [host-reserve=SIZE] [cpus=N] [priority=P]   its user updates its request
//	0s  hosts SIZE/CPUS               the machine's host memory and processors for tasks
//	0s  helpers SUITE SIZE            the allocation of a suite's helpers; 0 ends it
//	0s  reset|undrain GPU             it was reset; somebody uncordons it
//	0s  drain GPU [move]              somebody cordons it, and moves its tasks
//	0s  move NAME GPU...              somebody moves a task to these
//	0s  touch NAME                    somebody types into its terminal
//	0s  suspend|resume NAME           somebody asks for it
//	0s  suspended|resumed NAME [FAILURE]   the outcome
//	0s  submit NAME [mem=SIZE|mem=all|mem=later] [gpus=N] [user=U] [image=I] [kind=K] [priority=P] [limit=TIME] [slot=TIME]
//	         [after=NAME,...] [delay=TIME] [group=NAME:N] [retries=N] [run=TIME] [load=SMACT/DRAMA] [exclusive] [host-mem=SIZE] [terminal]
//	0s  estimate NAME mem=SIZE        of one submitted with mem=later
//	0s  start NAME                    its container runs
//	0s  paced NAME RATE [share=X]     its speed in the last minute according to its output, and the share done
//	0s  sample GPU [NAME=SIZE...] [smact=X] [drama=X] [foreign=SIZE] [fault=TEXT [lasts]]
//	0s  exit NAME CLASS [code=N] [wanted=SIZE] [fault=engine|unknown]
//	0s  canary started|failed|missing how the canary ended
//	0s  leaves NAME                   its program offers to vacate its GPUs on request
//	0s  cancel NAME                   its user stops it
//	0s  engine up|down
//	0s  why NAME                      the output of carma why
//	0s  wait                          nothing but time
//
// Timers fire automatically, at their times.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d stories, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			told := (&story{t: t, file: file, tasks: map[string]model.TaskID{}}).tell(string(text))
			if told == string(text) {
				return
			}
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Errorf("%s is told otherwise (UPDATE=1 rewrites it):\n%s", file, told)
		})
	}
}

type story struct {
	t     *testing.T
	file  string
	line  int
	s     *mapper.State
	gpus  []model.GPUInfo
	tasks map[string]model.TaskID
	names []string // of the tasks, by number from 1
	now   time.Duration
	out   strings.Builder
}

// begun is the instant of the first event; 0 is no time.
const begun = units.Instant(time.Hour)

// tell returns the text with the present decisions.
func (s *story) tell(text string) string {
	for _, line := range strings.SplitAfter(text, "\n") {
		s.line++
		fields := strings.Fields(line)
		switch {
		case len(fields) > 0 && fields[0] == ">":
		case len(fields) == 0 || fields[0] == "#":
			s.out.WriteString(line)
		default:
			at, err := time.ParseDuration(fields[0])
			if err != nil || at < s.now || len(fields) < 2 {
				s.fail("an event begins with its time, which does not go back")
			}
			s.wake(at)
			s.out.WriteString(line)
			s.event(fields[1], fields[2:])
		}
	}
	return s.out.String()
}

func (s *story) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s:%d: %s", s.file, s.line, fmt.Sprintf(format, args...))
}

// wake lets time pass, with all timers of carma.
func (s *story) wake(until time.Duration) {
	for s.s != nil {
		next, ok := s.s.NextTimer()
		if !ok || next.Sub(begun) > until {
			break
		}
		s.now = max(s.now, next.Sub(begun))
		s.step(model.TimerFired{At: s.at()}, "at "+s.now.String()+": ")
	}
	s.now = until
}

func (s *story) at() units.Instant { return begun.Add(s.now) }

// step writes the decisions on an event.
func (s *story) step(ev model.Event, before string) {
	for _, d := range s.s.Step(ev) {
		if text := s.decision(d); text != "" {
			s.say(before + text)
		}
	}
	if err := s.s.Audit(); err != nil {
		s.fail("%v", err)
	}
}

var numbered = regexp.MustCompile(`\btask (\d+)`)

// say writes a line, with tasks by their names.
func (s *story) say(text string) {
	text = numbered.ReplaceAllStringFunc(text, func(found string) string { return s.names[s.number(found[len("task "):])-1] })
	fmt.Fprintf(&s.out, "      > %s\n", text)
}

func (s *story) event(what string, args []string) {
	switch what {
	case "rules":
		s.rules(args)
	case "gpus":
		s.found(args)
	case "host-sample":
		s.hostSample(args)
	case "helpers":
		s.step(model.HelpersBooked{At: s.at(), Suite: args[0], Memory: s.bytes(args[1])}, "")
	case "submit":
		s.submit(args[0], args[1:])
	case "estimate":
		s.step(model.Estimated{At: s.at(), Task: s.task(args[0]), Estimate: s.estimate(strings.TrimPrefix(args[1], "mem="))}, "")
	case "start":
		id := s.task(args[0])
		s.step(model.Started{At: s.at(), Task: id, Attempt: s.attempt(id)}, "")
	case "paced":
		s.paced(args[0], s.share(args[1]), args[2:])
	case "sample":
		s.sample(args[0], args[1:])
	case "exit":
		s.exit(args[0], model.Class(args[1]), args[2:])
	case "canary":
		s.canary(model.CanaryOutcome(args[0]))
	case "cancel":
		s.step(model.Cancel{At: s.at(), Task: s.task(args[0]), Reason: "stopped by its user"}, "")
	case "leaves":
		id := s.task(args[0])
		s.step(model.VacatesOnRequest{At: s.at(), Task: id, Attempt: s.attempt(id)}, "")
	case "found-away": // TASK [left]
		id := s.task(args[0])
		s.step(model.SuspendedOutOfBand{At: s.at(), Task: id, Attempt: s.attempt(id), Left: len(args) > 1}, "")
	case "suspend":
		if no := s.s.CannotSuspend(s.task(args[0])); no.Code != "" {
			s.say("no: " + words.Reason(no))
		}
		s.step(model.SuspendAsked{At: s.at(), Task: s.task(args[0]), By: args[1]}, "")
	case "resume":
		s.step(model.ResumeAsked{At: s.at(), Task: s.task(args[0])}, "")
	case "hold":
		s.step(model.HoldChanged{At: s.at(), Task: s.task(args[0]), Hold: true, By: args[1], Why: strings.Join(args[2:], " ")}, "")
	case "release":
		s.step(model.HoldChanged{At: s.at(), Task: s.task(args[0])}, "")
	case "recall":
		s.step(model.RequeueRequested{At: s.at(), Task: s.task(args[0]), By: args[1]}, "")
	case "suspended":
		id := s.task(args[0])
		s.step(model.SuspendDone{At: s.at(), Task: id, Attempt: s.attempt(id), Failure: strings.Join(args[1:], " ")}, "")
	case "resumed":
		id := s.task(args[0])
		s.step(model.Resumed{At: s.at(), Task: id, Attempt: s.attempt(id), Failure: strings.Join(args[1:], " ")}, "")
	case "engine":
		s.step(model.EngineChanged{At: s.at(), Up: args[0] == "up", Reason: "nobody answers"}, "")
	case "why":
		why, ok := s.s.Why(s.task(args[0]))
		if !ok {
			s.fail("%s does not wait", args[0])
		}
		s.say(words.Why(why))
	case "change":
		s.change(args[0], args[1:])
	case "hosts":
		size, cpus, _ := strings.Cut(args[0], "/")
		s.step(model.HostsFound{At: s.at(), Hosts: []model.HostInfo{{Total: s.bytes(size), Memory: s.bytes(size), CPUs: 1000 * int64(s.number(cpus))}}}, "")
	case "reset":
		s.step(model.GPUsReset{At: s.at(), GPUs: []model.GPUID{s.gpus[s.number(args[0])].ID}}, "")
	case "undrain":
		s.step(model.GPUsCordoned{At: s.at(), GPUs: []model.GPUID{s.gpus[s.number(args[0])].ID}}, "")
	case "drain":
		c := model.Cordon{By: "root", Why: "a fan is loud", Move: len(args) > 1}
		s.step(model.GPUsCordoned{At: s.at(), GPUs: s.ids(args[:1]), Closure: &c}, "")
	case "move":
		s.step(model.Pinned{At: s.at(), Task: s.task(args[0]), GPUs: s.ids(args[1:]), By: "ann"}, "")
	case "touch":
		s.step(model.TerminalInput{At: s.at(), Task: s.task(args[0])}, "")
	case "wait":
	default:
		s.fail("there is no event %q", what)
	}
}

func (s *story) canary(outcome model.CanaryOutcome) {
	ev := model.CanaryEnded{At: s.at(), Outcome: outcome}
	if outcome == model.CanaryFailed {
		ev.Fault = &model.Fault{Code: "no-bridge", Cause: "the engine has no network"}
	}
	s.step(ev, "")
}

// ids are GPUs by their indices.
func (s *story) ids(indices []string) (all []model.GPUID) {
	for _, i := range indices {
		all = append(all, s.gpus[s.number(i)].ID)
	}
	return all
}

func (s *story) change(name string, args []string) {
	var c model.TaskUpdate
	ask := func() *model.HostAsk {
		if c.Host == nil {
			c.Host = &model.HostAsk{}
		}
		return c.Host
	}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "mem":
			c.Estimate = new(s.estimate(value))
		case "host-mem":
			ask().Memory = s.bytes(value)
		case "host-reserve":
			ask().Reserve = s.bytes(value)
		case "cpus":
			ask().CPUs = 1000 * int64(s.number(value))
		case "priority":
			c.Priority = new(map[string]model.Priority{"low": model.Low, "high": model.High}[value])
		default:
			s.fail("a task has no %q to change", key)
		}
	}
	s.step(model.TaskUpdated{At: s.at(), Task: s.task(name), Change: c}, "")
}

// hostSample reports the host memory used by tasks: a=22G.
func (s *story) hostSample(args []string) {
	var in model.HostSample
	for _, arg := range args {
		name, used, _ := strings.Cut(arg, "=")
		in.Tasks = append(in.Tasks, model.HostUse{Task: s.task(name), Used: s.bytes(used)})
	}
	s.step(model.Sampled{At: s.at(), Hosts: []model.HostSample{in}}, "")
}

func (s *story) rules(args []string) {
	o := mapper.DefaultsOf(args[0])
	for _, rule := range args[1:] {
		if err := rules.Apply(&o, rule); err != nil {
			s.fail("%v", err)
		}
	}
	if s.s == nil {
		s.s = mapper.New(o)
		return
	}
	s.step(model.Configured{At: s.at(), Options: o, Format: model.DecisionFormat}, "")
}

func (s *story) found(args []string) {
	s.gpus = nil
	boot := ""
	if last, found := strings.CutPrefix(args[len(args)-1], "boot="); found {
		boot, args = last, args[:len(args)-1]
	}
	for _, text := range args {
		n, size, _ := strings.Cut(text, "x")
		size, suspend, _ := strings.Cut(size, "/suspend-")
		size, sharing, _ := strings.Cut(size, "/")
		count, err := strconv.Atoi(n)
		if err != nil || sharing != "" && model.Sharing(sharing) != model.SharingTurns {
			s.fail("%q is not for example 2x40G or 2x40G/time-slicing", text)
		}
		for range count {
			i := len(s.gpus)
			s.gpus = append(s.gpus, model.GPUInfo{ID: model.GPUID(fmt.Sprintf("GPU-%d", i)), Index: i, Capacity: s.bytes(size), Sharing: model.Sharing(sharing), Boot: boot, Model: "a card", Suspend: model.SuspendKind(suspend)})
		}
	}
	s.step(model.GPUsFound{At: s.at(), GPUs: s.gpus}, "")
}

func (s *story) submit(name string, args []string) {
	r := model.Request{ID: model.TaskID(len(s.names) + 1), GPUs: 1}
	s.tasks[name], s.names = r.ID, append(s.names, name)
	mem, expected := "1G", model.Expected{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "mem":
			mem = value
		case "gpus":
			r.GPUs = s.number(value)
		case "user":
			r.User = value
		case "image":
			r.Image = value
		case "kind":
			r.Kind = value
		case "priority":
			r.Priority = map[string]model.Priority{"low": model.Low, "high": model.High}[value]
		case "limit":
			r.TimeLimit = s.span(value)
		case "slot":
			r.Slot = s.span(value)
		case "delay":
			r.Delay = s.span(value)
		case "retries":
			r.Retries = s.number(value)
		case "exclusive":
			r.Exclusive = true
		case "terminal":
			r.Terminal = true
		case "host-mem":
			r.HostMem = s.bytes(value)
		case "after":
			for _, first := range strings.Split(value, ",") {
				r.After = append(r.After, model.Dependency{Task: s.task(first), Condition: model.AfterOK})
			}
		case "group":
			group, limit, _ := strings.Cut(value, ":")
			r.Group, r.Parallel = group, s.number(limit)
		case "run":
			expected.RunTime = s.span(value)
		case "load":
			smact, drama, _ := strings.Cut(value, "/")
			expected.Loads = []interference.Load{{SMACT: s.share(smact), DRAMA: s.share(drama)}}
		default:
			s.fail("a task has no %q", key)
		}
	}
	s.step(model.TaskSubmitted{At: s.at(), Request: r}, "")
	if mem != "later" {
		s.step(model.Estimated{At: s.at(), Task: r.ID, Estimate: s.estimate(mem), Expected: expected}, "")
	}
}

func (s *story) estimate(mem string) model.Estimate {
	if mem == "all" {
		return model.Estimate{WholeGPU: true}
	}
	return model.Estimate{Memory: s.bytes(mem)}
}

func (s *story) paced(name string, rate float64, args []string) {
	id := s.task(name)
	pace := model.Throughput{Task: id, Attempt: s.attempt(id), Rate: rate, Since: s.at().Add(-time.Minute)}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		if key != "share" {
			s.fail("a rate has no %q", key)
		}
		pace.Share = s.share(value)
	}
	s.step(model.ThroughputReported{At: s.at(), Tasks: []model.Throughput{pace}}, "")
}

func (s *story) sample(gpu string, args []string) {
	one := model.GPUSample{ID: s.gpus[s.number(gpu)].ID}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "smact":
			one.SMACT = s.share(value)
		case "drama":
			one.DRAMA = s.share(value)
		case "fault":
			one.Fault = value
		case "lasts":
			one.UntilReset = true
		case "foreign":
			one.OtherProcesses = s.bytes(value)
			one.Used += one.OtherProcesses
		default:
			use := model.TaskUse{Task: s.task(key), Used: s.bytes(value)}
			one.Tasks, one.Used = append(one.Tasks, use), one.Used+use.Used
		}
	}
	s.step(model.Sampled{At: s.at(), GPUs: []model.GPUSample{one}}, "")
}

func (s *story) exit(name string, class model.Class, args []string) {
	id := s.task(name)
	ev := model.Exited{At: s.at(), Task: id, Attempt: s.attempt(id), Class: class}
	if class != model.ExitOK {
		ev.Code = 1
	}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "code":
			ev.Code = s.number(value)
		case "wanted":
			ev.Demand = s.bytes(value)
		case "fault":
			ev.Fault = &model.Fault{Scope: model.BreakerScope(value), Code: "no-bridge", Cause: "the engine has no network"}
		default:
			s.fail("an end has no %q", key)
		}
	}
	s.step(ev, "")
}

// decision describes a decision for readers, or returns "" if it does not matter.
func (s *story) decision(d model.Decision) string {
	switch d := d.(type) {
	case model.Launch:
		text := fmt.Sprintf("launch %s %s", s.name(d.Task), s.grants(d.Grants))
		if d.Attempt > 1 {
			text += fmt.Sprintf(", attempt %d", d.Attempt)
		}
		if d.Alone {
			text += ", alone"
		}
		return text
	case model.Stop:
		return fmt.Sprintf("stop %s: %s", s.name(d.Task), words.Reason(d.Reason))
	case model.Suspend:
		text := fmt.Sprintf("suspend %s, %s to host memory: %s", s.name(d.Task), d.Host, words.Reason(d.Reason))
		if d.Leave {
			text += "; it leaves by itself"
		}
		return text
	case model.Resume:
		return fmt.Sprintf("resume %s %s", s.name(d.Task), s.grants(d.Grants))
	case model.Requeue:
		return fmt.Sprintf("%s is %s: %s", s.name(d.Task), d.Phase, words.Reason(d.Reason))
	case model.Release:
		return s.name(d.Task) + " is queued"
	case model.GrantChanged:
		return fmt.Sprintf("%s has %s now", s.name(d.Task), s.grants(d.Grants))
	case model.Resize:
		return fmt.Sprintf("%s may use %s of host memory now; %s and %d thousandths of a processor are booked", s.name(d.Task), d.Host.Limit, d.Host.Memory, d.Host.CPUs)
	case model.GrantExceeded:
		return fmt.Sprintf("%s uses %s of %s; %s booked", s.name(d.Task), d.Used, d.Grant, d.Booked)
	case model.Finish:
		text := fmt.Sprintf("%s has %s", s.name(d.Task.ID), d.Task.Phase)
		if d.Task.Phase == model.Cancelled {
			text = s.name(d.Task.ID) + " is cancelled"
		}
		if reason := words.Reason(d.Task.Reason); reason != "" {
			text += ": " + reason
		}
		return text
	case model.Idle:
		switch {
		case d.Since == 0:
			return s.name(d.Task) + " does something again"
		case d.Ends == 0:
			return s.name(d.Task) + " does nothing"
		}
		return fmt.Sprintf("%s is warned: it does nothing", s.name(d.Task))
	case model.SetTimer:
		return ""
	}
	s.fail("nobody says what a %T is", d)
	return ""
}

func (s *story) grants(all []model.Grant) string {
	var gpus []string
	for _, g := range all {
		gpus = append(gpus, strings.TrimPrefix(string(g.GPU), "GPU-"))
	}
	return fmt.Sprintf("on %s with %s", strings.Join(gpus, ", "), all[0].Memory)
}

func (s *story) task(name string) model.TaskID {
	id, ok := s.tasks[name]
	if !ok {
		s.fail("there is no task %q", name)
	}
	return id
}

func (s *story) name(id model.TaskID) string { return s.names[id-1] }

// attempt returns the number of a task's last.
func (s *story) attempt(id model.TaskID) int {
	all := s.s.Tasks()
	i := slices.IndexFunc(all, func(t model.Task) bool { return t.ID == id })
	if i < 0 || len(all[i].Attempts) == 0 {
		s.fail("%s does not run", s.name(id))
	}
	return all[i].Last().N
}

func (s *story) bytes(text string) units.Bytes {
	n, err := units.ParseBytes(text)
	if err != nil {
		s.fail("%v", err)
	}
	return n
}

func (s *story) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.fail("%q is not a number", text)
	}
	return n
}

func (s *story) share(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.fail("%q is not a share", text)
	}
	return x
}

func (s *story) span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.fail("%v", err)
	}
	return d
}
