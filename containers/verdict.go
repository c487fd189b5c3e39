package containers

import (
	"fmt"
	"slices"

	"carma/containers/endtext"
)

// Facts contains facts about a run that are not in its output.
type Facts struct {
	// Stopped is set if carma stopped the run.
	Stopped bool
	// EngineLost is set if the engine stopped during the run, or the container ended while
	// no daemon watched it. In both cases the engine may have ended the container.
	EngineLost bool
	// Memory contains the measurements of the run's GPU memory.
	Memory GPUMemory
	// NoGPU is set if the task had no GPU.
	NoGPU bool
	// GPUFault is a fault of one of the run's GPUs that was observed during the run, such as
	// an Xid, or empty.
	GPUFault string
	// DeviceLost is the reason why a device of the run's GPUs can no longer be opened in the
	// container, or empty. DeviceOpen is set if the devices were tested at the end and can
	// be opened.
	DeviceLost string
	DeviceOpen bool
	// OOMTexts and OOMExits are the program's own texts and exit codes that mean that GPU
	// memory ran out.
	OOMTexts []string
	OOMExits []int
	// MostMemory is the memory in bytes of the largest GPU, or 0 if unknown.
	MostMemory int64
	// Origins contains the sources of the last lines; see [endtext.Options].
	Origins []endtext.Origin
}

// Source names the origin of a witness.
type Source string

// The sources.
const (
	SourceOutput Source = "output" // text printed by the program
	SourceExit   Source = "exit"   // exit code and signal
	SourceKernel Source = "kernel" // the control group's counters
	SourceEngine Source = "engine"
	SourceMemory Source = "gpu-memory" // NVML's figures
	SourceGPU    Source = "gpu"        // Xid and other faults
	SourceDevice Source = "device"     // test whether the device can be opened
	SourcePeers  Source = "peers"      // other processes of a distributed job
)

// Witness is one observation about how a run ended.
type Witness struct {
	Source Source `json:"source"`
	// Says is the class that the witness supports, "not-gpu-oom" if it contradicts that
	// class, or empty.
	Says string `json:"says,omitempty"`
	// Strength is strong, words, hint or weak.
	Strength string `json:"strength,omitempty"`
	// Rule is the matching rule, for output.
	Rule string `json:"rule,omitempty"`
	// Text describes the observation. For output it is the line, which is private.
	Text string `json:"text"`
}

// Verdict is the result of [Classify].
type Verdict struct {
	Class Class
	// Code is the exit code.
	Code int
	// Rule is the name of the deciding rule of endtext, or empty.
	Rule string
	// Message is one line for people.
	Message string
	// Evidence is the deciding line of output, or empty.
	Evidence string
	// CUDA is set if the output has a CUDA error. A program prints one for its own fault
	// and, under MPS, for a neighbour's fault.
	CUDA bool
	// Demand is the GPU memory in bytes that the process would have needed: its use plus
	// the refused request, or 0 if unknown.
	Demand int64
	// Confirmed is set if a GPU OOM has two witnesses. With only one, the task gets no
	// exclusive GPU.
	Confirmed bool
	// Remark is an additional note for people, or empty.
	Remark string
	// Witnesses lists all observations, the deciding ones first.
	Witnesses []Witness
	// Start is the reason why the container did not start, if the request is not the cause.
	Start *StartFault
}

// evidence is the input of the table of verdicts.
type evidence struct {
	exit  Exit
	facts Facts
	text  endtext.Reading
	// says and strength belong to the claim that counts, or are empty.
	says     endtext.Says
	strength endtext.Strength
	memory   MemoryState
}

// row is a row of the table of verdicts. The first row whose condition holds decides.
type row struct {
	name    string
	when    func(e *evidence) bool
	class   Class
	message func(e *evidence) string
	decides []Source
}

// table turns evidence into a class. Measurements outrank texts: a program that used no GPU
// memory, or far less than its grant, was not out of GPU memory, even if its output says so.
var table = []row{
	{"start-machine", func(e *evidence) bool { return e.exit.Error != "" && MachineFault(e.exit.Error) }, ClassInfrastructure,
		func(e *evidence) string { return "could not start: " + line(e.exit.Error) }, []Source{SourceEngine}},
	{"start-task", func(e *evidence) bool { return e.exit.Error != "" }, ClassCannotStart,
		func(e *evidence) string { return "cannot start: " + line(e.exit.Error) }, []Source{SourceEngine}},
	{"engine-lost-it", func(e *evidence) bool { return e.exit.Lost && !e.facts.Stopped }, ClassInfrastructure,
		says("the container engine lost it: how it ended is not known"), []Source{SourceEngine}},
	{"oom-exit-zero", func(e *evidence) bool { return e.exit.Code == 0 }, ClassOK, says("exit code 0"), []Source{SourceExit}},
	{"stopped", func(e *evidence) bool { return e.facts.Stopped }, ClassStopped, says("stopped by carma"), []Source{SourceExit}},
	{"killed-for-host-memory", func(e *evidence) bool { return e.exit.OOMKilled && e.exit.Code == 137 }, ClassHostOOM,
		says("killed by the kernel: out of host memory"), []Source{SourceKernel, SourceExit}},
	{"mps-evicted", func(e *evidence) bool { return e.says == endtext.Evicted }, ClassEvicted, claimed, []Source{SourceOutput}},
	{"mps-fault", func(e *evidence) bool { return e.says == endtext.MPSFault }, ClassMPSFault, claimed, []Source{SourceOutput}},
	{"infrastructure-text", func(e *evidence) bool { return e.says == endtext.Infrastructure }, ClassInfrastructure, claimed, []Source{SourceOutput, SourceGPU}},
	{"device-lost", func(e *evidence) bool { return e.says == endtext.DeviceMissing && e.deviceGone() != "" }, ClassInfrastructure,
		func(e *evidence) string { return e.text.Cause.Message + ": " + e.deviceGone() }, []Source{SourceDevice, SourceGPU, SourceOutput}},
	{"no-device", func(e *evidence) bool { return e.says == endtext.DeviceMissing }, ClassProgram, claimed, []Source{SourceOutput, SourceDevice}},
	{"oom-exit", func(e *evidence) bool { return e.oomExit() && !e.against() }, ClassGPUOOM,
		func(e *evidence) string {
			return fmt.Sprintf("out of GPU memory (%s, as --oom-exit says)", codeText(e.exit.Code))
		}, []Source{SourceExit, SourceMemory}},
	{"gpu-oom", func(e *evidence) bool {
		return e.says == endtext.GPUOOM && e.strength == endtext.Strong && !e.against()
	}, ClassGPUOOM, claimed, []Source{SourceOutput, SourceMemory}},
	{"gpu-oom-measured", func(e *evidence) bool { return e.says == endtext.GPUOOM && e.memory == MemoryNear }, ClassGPUOOM, claimed, []Source{SourceOutput, SourceMemory}},
	{"gpu-oom-suspected", func(e *evidence) bool {
		return e.says == endtext.GPUOOM && e.strength == endtext.Words && !e.against() && !e.exit.OOMKilled
	}, ClassSuspectedOOM,
		func(e *evidence) string { return "perhaps " + claimed(e) }, []Source{SourceOutput, SourceMemory}},
	{"host-oom-text", func(e *evidence) bool { return e.says == endtext.HostOOM }, ClassHostOOM, claimed, []Source{SourceOutput, SourceKernel}},
	{"program-text", func(e *evidence) bool { return e.says == endtext.Program }, ClassProgram, claimed, []Source{SourceOutput}},
	{"process-killed-for-host-memory", func(e *evidence) bool { return e.exit.OOMKilled }, ClassHostOOM,
		says("the kernel killed one of its processes: out of host memory"), []Source{SourceKernel, SourcePeers}},
	{"ended-with-engine", func(e *evidence) bool {
		return e.facts.EngineLost && (e.exit.Code == 137 || e.exit.Code == 143 || e.exit.Code == 255)
	}, ClassInfrastructure, says("ended with the container engine"), []Source{SourceEngine, SourceExit}},
	{"device-taken", func(e *evidence) bool { return e.facts.DeviceLost != "" }, ClassInfrastructure,
		func(e *evidence) string { return e.facts.DeviceLost + "; " + codeText(e.exit.Code) }, []Source{SourceDevice, SourceExit}},
	{"gpu-fault", func(e *evidence) bool { return e.facts.GPUFault != "" && e.text.CUDA }, ClassInfrastructure,
		func(e *evidence) string { return "its GPU failed: " + line(e.facts.GPUFault) }, []Source{SourceGPU, SourceOutput}},
	{"never-ran", func(e *evidence) bool {
		return e.exit.Started.IsZero() && !e.exit.Finished.IsZero() && e.exit.Code >= 125 && e.exit.Code <= 127
	}, ClassCannotStart, func(e *evidence) string { return "cannot start: " + codeText(e.exit.Code) }, []Source{SourceExit}},
	{"program", func(*evidence) bool { return true }, ClassProgram, own, []Source{SourceExit}},
}

// Classify determines why a container ended. Its inputs are the exit, the last lines of
// the output (see [Tail]) and other facts.
//
// It collects witnesses, and a table turns them into a class. Exit code 0 gives ok,
// regardless of the output, because a program may survive an out-of-memory error. A run
// stopped by carma gives stopped. A failure without a witness is the program's own, never
// an out-of-memory error.
func Classify(exit Exit, tail []string, facts Facts) Verdict {
	e := &evidence{exit: exit, facts: facts, text: endtext.Read(tail, endtext.Options{Origins: facts.Origins, OOMTexts: facts.OOMTexts, MostMemory: facts.MostMemory})}
	v := Verdict{Code: exit.Code, CUDA: e.text.CUDA}
	request := int64(0)
	if c := e.text.Cause; c != nil {
		e.says, e.strength, request = c.Says, c.Strength, c.Refused
		if facts.NoGPU && c.Says == endtext.GPUOOM {
			e.says, e.strength = endtext.Program, endtext.Strong
		}
	}
	e.memory = e.facts.Memory.State(request)
	i := slices.IndexFunc(table, func(r row) bool { return r.when(e) })
	r := table[i]
	v.Class, v.Message = r.class, r.message(e)
	if c := e.text.Cause; c != nil && slices.Contains(r.decides, SourceOutput) {
		v.Rule, v.Evidence = c.Rule, c.Line
	} else if v.Class == ClassProgram {
		v.Evidence = e.text.Own
	}
	if v.Class == ClassGPUOOM || v.Class == ClassSuspectedOOM {
		v.Demand = e.demand()
		v.Message += needed(v.Demand)
		v.Confirmed = e.memory == MemoryNear
	}
	if v.Class == ClassInfrastructure && exit.Error != "" {
		v.Start = ReadStartFault(exit.Error)
	}
	v.Remark = e.remark(v.Class)
	v.Witnesses = e.witnesses(r.decides)
	return v
}

// says returns a function that returns a fixed message.
func says(text string) func(*evidence) string { return func(*evidence) string { return text } }

// claimed returns the message of the claim that counts.
func claimed(e *evidence) string { return e.text.Cause.Message }

// own returns the message for a failure of the program's own.
func own(e *evidence) string {
	text := codeText(e.exit.Code)
	switch {
	case e.text.Own != "":
		text += ": " + e.text.Own
	case e.text.Killed:
		text += ": one of its processes was killed (signal 9)"
	}
	return text
}

// against reports whether measurements contradict a GPU OOM.
func (e *evidence) against() bool {
	return e.memory == MemoryUntouched || e.memory == MemoryBelow
}

func (e *evidence) oomExit() bool {
	return !e.facts.NoGPU && slices.Contains(e.facts.OOMExits, e.exit.Code)
}

// deviceGone returns the reason why a program that found no GPU is not at fault, or "".
func (e *evidence) deviceGone() string {
	switch {
	case e.facts.DeviceLost != "":
		return e.facts.DeviceLost
	case e.facts.GPUFault != "":
		return line(e.facts.GPUFault)
	case e.facts.Memory.Seen && !e.facts.DeviceOpen:
		return "it had used its GPU before"
	}
	return ""
}

// demand returns the memory that the run would have needed, from its output or from the
// measured peak plus the refused request.
func (e *evidence) demand() int64 {
	c := e.text.Cause
	switch {
	case c == nil:
		return 0
	case c.Demand > 0:
		return c.Demand
	case c.Refused > 0 && e.facts.Memory.Seen:
		return e.facts.Memory.Peak + c.Refused
	}
	return 0
}

// remark returns an additional note for people about the class.
func (e *evidence) remark(class Class) string {
	c := e.text.Cause
	switch {
	case class == ClassOK && c != nil && c.Strength == endtext.Strong && c.Says != endtext.Program:
		return "the output ends with an error (" + c.Message + "), though the exit code is 0: a pipe may hide the program's own exit code (set -o pipefail)"
	case class == ClassProgram && c != nil && c.Says == endtext.GPUOOM && e.against():
		return "the output says " + c.Message + ", but " + e.facts.Memory.text(e.memory)
	case class == ClassProgram && e.exit.OOMKilled:
		return "the kernel killed one of its processes: out of host memory"
	}
	return ""
}

// witnesses lists all observations. Observations from the deciding sources come first.
func (e *evidence) witnesses(decides []Source) []Witness {
	var all []Witness
	add := func(ok bool, w Witness) {
		if ok {
			all = append(all, w)
		}
	}
	if c := e.text.Cause; c != nil {
		add(true, Witness{SourceOutput, string(c.Says), c.Strength.String(), c.Rule, c.Line})
	}
	if c := e.text.Weak; c != nil {
		add(true, Witness{SourceOutput, string(c.Says), c.Strength.String(), c.Rule, c.Line})
	}
	exit := ""
	if e.oomExit() {
		exit = string(ClassGPUOOM)
	}
	add(e.exit.Error == "", Witness{SourceExit, exit, "strong", "", codeText(e.exit.Code)})
	add(e.exit.Error != "", Witness{SourceEngine, "", "strong", "", line(e.exit.Error)})
	add(e.exit.Lost, Witness{SourceEngine, string(ClassInfrastructure), "strong", "", "the engine does not know how it ended"})
	add(e.exit.OOMKilled, Witness{SourceKernel, string(ClassHostOOM), "strong", "", "the kernel killed a process of it for host memory"})
	add(e.facts.EngineLost, Witness{SourceEngine, string(ClassInfrastructure), "words", "", "the engine, or the daemon that watches it, was away when the container ended"})
	if m := e.facts.Memory; m.Readings > 0 || m.Seen || m.CardFull {
		speaks := map[MemoryState]string{MemoryNear: string(ClassGPUOOM), MemoryBelow: "not-gpu-oom", MemoryUntouched: "not-gpu-oom"}[e.memory]
		strength := "strong"
		if speaks == "" {
			strength = "weak"
		}
		add(true, Witness{SourceMemory, speaks, strength, "", m.text(e.memory)})
		add(m.Neighbours != "", Witness{SourceMemory, string(ClassGPUOOM), "words", "", m.Neighbours})
	}
	add(e.facts.GPUFault != "", Witness{SourceGPU, string(ClassInfrastructure), "strong", "", line(e.facts.GPUFault)})
	add(e.facts.DeviceLost != "", Witness{SourceDevice, string(ClassInfrastructure), "strong", "", e.facts.DeviceLost})
	add(e.facts.DeviceOpen, Witness{SourceDevice, "", "strong", "", "its GPU devices can be opened"})
	add(e.text.Killed, Witness{SourcePeers, string(ClassHostOOM), "weak", "", "a launcher reports a process killed by signal 9"})
	slices.SortStableFunc(all, func(a, b Witness) int {
		return place(decides, a.Source) - place(decides, b.Source)
	})
	return all
}

// place returns the index of a source, or a larger number than any index if the source is
// missing.
func place(list []Source, s Source) int {
	if i := slices.Index(list, s); i >= 0 {
		return i
	}
	return len(list)
}
