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

	"carma/mapper/units"

	"carma/configs"
	"carma/mapper"
	"carma/mapper/interference"
	"carma/mapper/words"
)

// TestStories plays the stories of testdata/stories: events in, decisions out.
// UPDATE=1 rewrites what is decided; read the difference before you keep it.
//
// A line is a comment (#), a decision (>), or an event with the time since the
// beginning before it. The first events are rules and gpus:
//
//	0s  rules POLICY [KEY=VALUE...]   as carma config has them; a second time: the daemon is configured anew
//	0s  gpus NxSIZE                   these are found
//	0s  submit NAME [mem=SIZE|mem=all|mem=later] [gpus=N] [user=U] [kind=K] [priority=P] [limit=TIME] [slot=TIME]
//	         [after=NAME,...] [delay=TIME] [group=NAME:N] [retries=N] [run=TIME] [load=SMACT/DRAMA] [exclusive]
//	0s  estimate NAME mem=SIZE        of one submitted with mem=later
//	0s  start NAME                    its container runs
//	0s  sample GPU [NAME=SIZE...] [smact=X] [drama=X] [foreign=SIZE] [fault=TEXT]
//	0s  exit NAME CLASS [code=N] [wanted=SIZE] [fault=engine]
//	0s  cancel NAME                   its user stops it
//	0s  engine up|down
//	0s  why NAME                      what carma why says
//	0s  wait                          nothing but time
//
// What carma asked to be woken for comes by itself, with its time.
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
			told := (&story{t: t, file: file, tasks: map[string]mapper.TaskID{}}).tell(string(text))
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
	gpus  []mapper.GPUInfo
	tasks map[string]mapper.TaskID
	names []string // of the tasks, by number from 1
	now   time.Duration
	out   strings.Builder
}

// begun is the instant of the first event; 0 is no time.
const begun = units.Instant(time.Hour)

// tell returns the text with what is decided now.
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

// wake lets the time come, with all that carma wants to be woken for.
func (s *story) wake(until time.Duration) {
	for s.s != nil {
		next, ok := s.s.NextWake()
		if !ok || next.Sub(begun) > until {
			break
		}
		s.now = max(s.now, next.Sub(begun))
		s.step(mapper.Woke{At: s.at()}, "at "+s.now.String()+": ")
	}
	s.now = until
}

func (s *story) at() units.Instant { return begun.Add(s.now) }

// step writes what an event leads to.
func (s *story) step(ev mapper.Event, before string) {
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
		s.found(args[0])
	case "submit":
		s.submit(args[0], args[1:])
	case "estimate":
		s.step(mapper.Estimated{At: s.at(), Task: s.task(args[0]), Estimate: s.estimate(strings.TrimPrefix(args[1], "mem="))}, "")
	case "start":
		id := s.task(args[0])
		s.step(mapper.Started{At: s.at(), Task: id, Attempt: s.attempt(id)}, "")
	case "sample":
		s.sample(args[0], args[1:])
	case "exit":
		s.exit(args[0], mapper.Class(args[1]), args[2:])
	case "cancel":
		s.step(mapper.Cancel{At: s.at(), Task: s.task(args[0]), Reason: "stopped by its user"}, "")
	case "engine":
		s.step(mapper.EngineChanged{At: s.at(), Up: args[0] == "up", Reason: "nobody answers"}, "")
	case "why":
		why, ok := s.s.Why(s.task(args[0]))
		if !ok {
			s.fail("%s does not wait", args[0])
		}
		s.say(words.Why(why))
	case "wait":
	default:
		s.fail("there is no event %q", what)
	}
}

func (s *story) rules(args []string) {
	o := mapper.DefaultsOf(args[0])
	for _, rule := range args[1:] {
		if err := configs.SetRule(&o, rule); err != nil {
			s.fail("%v", err)
		}
	}
	if s.s == nil {
		s.s = mapper.New(o)
		return
	}
	s.step(mapper.Configured{At: s.at(), Options: o, Format: mapper.DecisionFormat}, "")
}

func (s *story) found(text string) {
	n, size, _ := strings.Cut(text, "x")
	count, err := strconv.Atoi(n)
	if err != nil {
		s.fail("%q is not for example 2x40G", text)
	}
	s.gpus = nil
	for i := range count {
		s.gpus = append(s.gpus, mapper.GPUInfo{ID: mapper.GPUID(fmt.Sprintf("GPU-%d", i)), Index: i, Capacity: s.bytes(size)})
	}
	s.step(mapper.GPUsFound{At: s.at(), GPUs: s.gpus}, "")
}

func (s *story) submit(name string, args []string) {
	r := mapper.Request{ID: mapper.TaskID(len(s.names) + 1), GPUs: 1}
	s.tasks[name], s.names = r.ID, append(s.names, name)
	mem, expected := "1G", mapper.Expected{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "mem":
			mem = value
		case "gpus":
			r.GPUs = s.number(value)
		case "user":
			r.User = value
		case "kind":
			r.Kind = value
		case "priority":
			r.Priority = map[string]mapper.Priority{"low": mapper.Low, "high": mapper.High}[value]
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
		case "after":
			for _, first := range strings.Split(value, ",") {
				r.After = append(r.After, mapper.Dependency{Task: s.task(first), Condition: mapper.AfterOK})
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
	s.step(mapper.TaskSubmitted{At: s.at(), Request: r}, "")
	if mem != "later" {
		s.step(mapper.Estimated{At: s.at(), Task: r.ID, Estimate: s.estimate(mem), Expected: expected}, "")
	}
}

func (s *story) estimate(mem string) mapper.Estimate {
	if mem == "all" {
		return mapper.Estimate{WholeGPU: true}
	}
	return mapper.Estimate{Memory: s.bytes(mem)}
}

func (s *story) sample(gpu string, args []string) {
	one := mapper.GPUSample{ID: s.gpus[s.number(gpu)].ID}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "smact":
			one.SMACT = s.share(value)
		case "drama":
			one.DRAMA = s.share(value)
		case "fault":
			one.Fault = value
		case "foreign":
			one.Foreign = s.bytes(value)
			one.Used += one.Foreign
		default:
			use := mapper.TaskUse{Task: s.task(key), Used: s.bytes(value)}
			one.Tasks, one.Used = append(one.Tasks, use), one.Used+use.Used
		}
	}
	s.step(mapper.Sampled{At: s.at(), GPUs: []mapper.GPUSample{one}}, "")
}

func (s *story) exit(name string, class mapper.Class, args []string) {
	id := s.task(name)
	ev := mapper.Exited{At: s.at(), Task: id, Attempt: s.attempt(id), Class: class}
	if class != mapper.ExitOK {
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
			ev.Fault = &mapper.Fault{Scope: mapper.Scope(value), Code: "no-bridge", Cause: "the engine has no network"}
		default:
			s.fail("an end has no %q", key)
		}
	}
	s.step(ev, "")
}

// decision is what a reader wants to know of one; empty: nothing.
func (s *story) decision(d mapper.Decision) string {
	switch d := d.(type) {
	case mapper.Launch:
		text := fmt.Sprintf("launch %s %s", s.name(d.Task), s.grants(d.Grants))
		if d.Attempt > 1 {
			text += fmt.Sprintf(", attempt %d", d.Attempt)
		}
		if d.Alone {
			text += ", alone"
		}
		return text
	case mapper.Stop:
		return fmt.Sprintf("stop %s: %s", s.name(d.Task), words.Reason(d.Reason))
	case mapper.Requeue:
		return fmt.Sprintf("%s is %s: %s", s.name(d.Task), d.Phase, words.Reason(d.Reason))
	case mapper.Release:
		return s.name(d.Task) + " is queued"
	case mapper.Regrant:
		return fmt.Sprintf("%s has %s now", s.name(d.Task), s.grants(d.Grants))
	case mapper.Overuse:
		return fmt.Sprintf("%s uses %s of %s; %s booked", s.name(d.Task), d.Used, d.Grant, d.Booked)
	case mapper.Finish:
		text := fmt.Sprintf("%s has %s", s.name(d.Task.ID), d.Task.Phase)
		if d.Task.Phase == mapper.Cancelled {
			text = s.name(d.Task.ID) + " is cancelled"
		}
		if reason := words.Reason(d.Task.Reason); reason != "" {
			text += ": " + reason
		}
		return text
	case mapper.WakeAt:
		return ""
	}
	s.fail("nobody says what a %T is", d)
	return ""
}

func (s *story) grants(all []mapper.Grant) string {
	var gpus []string
	for _, g := range all {
		gpus = append(gpus, strings.TrimPrefix(string(g.GPU), "GPU-"))
	}
	return fmt.Sprintf("on %s with %s", strings.Join(gpus, ", "), all[0].Memory)
}

func (s *story) task(name string) mapper.TaskID {
	id, ok := s.tasks[name]
	if !ok {
		s.fail("there is no task %q", name)
	}
	return id
}

func (s *story) name(id mapper.TaskID) string { return s.names[id-1] }

// attempt is the number of a task's last.
func (s *story) attempt(id mapper.TaskID) int {
	all := s.s.Tasks()
	i := slices.IndexFunc(all, func(t mapper.Task) bool { return t.ID == id })
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
