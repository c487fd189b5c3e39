package command

import (
	"path"
	"slices"
	"strings"

	"carma/estimator/arguments"
	"carma/estimator/servers"
	"carma/estimator/shell"
)

// Program is the image and command of a task.
type Program struct {
	Image string // image reference
	// Entrypoint and Command are the task's own. If one is empty, the image's applies.
	Entrypoint, Command []string
	// ImageEntrypoint and ImageCommand are the image's, or empty if unknown.
	ImageEntrypoint, ImageCommand []string
	// Env contains the variables of the task as KEY=value, ImageEnv the variables of the
	// image.
	Env, ImageEnv []string
	// Grows is set if the settings of frameworks make them allocate memory on demand.
	Grows bool
	// File reads the files that the command names, or is nil.
	File arguments.File
}

// Argv returns the whole command line, as an engine combines it.
func (p *Program) Argv() []string {
	entrypoint, command := p.Entrypoint, p.Command
	if len(entrypoint) == 0 {
		if entrypoint = p.ImageEntrypoint; len(entrypoint) > 0 && len(command) > 0 && !runs(entrypoint[0]) && runs(command[0]) {
			return command // the command starts with a program, so the entrypoint runs it
		}
		if len(command) == 0 {
			command = p.ImageCommand
		}
	}
	if len(entrypoint) == 1 && entrypoint[0] == "" { // an empty word clears the image's entrypoint
		entrypoint = nil
	}
	return slices.Concat(entrypoint, command)
}

// runs reports whether a program is in the package's tables: an interpreter, a shell, a
// wrapper, a launcher or another program.
func runs(name string) bool {
	name = path.Base(name)
	if interpreter().MatchString(name) || shell.Runs(name) || consoleScript(name) {
		return true
	}
	is := func(command string) bool { first, _, _ := strings.Cut(command, " "); return first == name }
	return slices.ContainsFunc(launchers, func(l launcher) bool { return slices.ContainsFunc(l.names, is) }) ||
		slices.ContainsFunc(inferenceServers, func(s parallelism) bool { return slices.ContainsFunc(s.commands, is) })
}

// Certainty is the reliability of a fact.
type Certainty int

const (
	// Possible facts are worth a warning.
	Possible Certainty = iota
	// Likely facts count if the submitter gave no value.
	Likely
	// Sure facts contradict another value that the submitter gave.
	Sure
)

// Fact is a value in a command line. From contains the words that state it.
type Fact struct{ Value, From string }

// Reading contains the facts in a command line.
type Reading struct {
	// Training contains the model, the batch size of each GPU, the precision and other
	// settings.
	Training *arguments.Found
	// Batch is the batch size that the command or the environment names, or 0.
	Batch int
	// Server is the program that by design takes a share of a GPU, or nil. Share is the
	// error of an invalid setting of the share.
	Server *servers.Found
	Share  error
	// Demands lists the commands' demands for GPUs, the most certain first.
	Demands []Demand
	// Nodes is a launcher's number of machines, or nil unless it is more than one.
	Nodes *Fact
	// Resume is the checkpoint from which the program resumes. Checkpoints is the folder
	// for its checkpoints. Each is nil if the command line names none.
	Resume, Checkpoints *Fact
	// Pipes lists the pipelines that hide the failure of a program.
	Pipes []string
	// NoGPU is the variable setting that hides all GPUs from the commands, or empty.
	NoGPU string
	// Machine is the variable setting that names GPUs of the machine by UUID, or empty.
	Machine string
}

// Read reads the command line of a program.
func Read(p *Program) *Reading {
	argv, env := p.Argv(), slices.Concat(p.ImageEnv, p.Env)
	r := &reader{Reading: &Reading{}, p: p, env: env}
	r.Training = arguments.Read(argv, p.File)
	r.Batch = Batch(argv, p.Env)
	found, ok, err := servers.Recognise(servers.Program{Image: p.Image, Entrypoint: p.Entrypoint, Command: p.Command, Env: env, Grows: p.Grows})
	if ok {
		r.Server = &found
	}
	r.Share = err
	line := shell.Parse(argv, env)
	for i := range line.Commands {
		r.command(&line.Commands[i])
	}
	if len(line.Commands) == 0 && len(argv) == 0 {
		r.visible(&shell.Command{Sure: true})
	}
	r.join()
	r.pipes(line.Pipes)
	return r.Reading
}

// reader collects a reading.
type reader struct {
	*Reading
	p   *Program
	env []string

	indexes, visibles []Demand // demands for GPUs by index, which join merges
	sees              int      // number of GPUs in CUDA_VISIBLE_DEVICES of the current command, or 0
}

// command reads one command.
func (r *reader) command(c *shell.Command) {
	r.visible(c)
	r.program(c, programOf(c.Words))
}

// program reads the program of a command. If it is a launcher, program also reads the
// launched program.
func (r *reader) program(c *shell.Command, p program) {
	if l, from := launcherOf(&p); l != nil && parallelOf(&p, nil) == nil {
		r.launch(c, l, &p, from)
		return
	}
	if harmless(p.name) && !p.python {
		return
	}
	r.folders(p.name, p.args)
	if s := parallelOf(&p, r.Server); s != nil {
		r.parallel(c, s, &p)
		return
	}
	r.devices(c, &p)
}

// add adds a demand of a command. If the command may be skipped, the demand is only
// [Possible].
func (r *reader) add(c *shell.Command, d Demand) {
	if !c.Sure {
		d.Certainty = min(d.Certainty, Possible)
	}
	switch {
	case d.Count == 0 && !d.All:
	case d.Kind == Visible:
		r.visibles = append(r.visibles, d)
	case d.Kind == Index:
		if r.sees == 0 || d.Highest >= r.sees {
			r.indexes = append(r.indexes, d)
		}
	default:
		r.Demands = append(r.Demands, d)
	}
}
