package shell

import (
	"path"
	"slices"
	"strings"
)

// Bounds on the work for one command line.
const (
	maxScript = 32 << 10 // bytes of a script; bounded because the parser recurses
	maxWord   = 4 << 10  // bytes of an expanded word
	maxWords  = 4096     // words of one command
	maxLines  = 1024     // commands of a line
	maxDepth  = 8        // shells within shells
)

// Line is a command line.
type Line struct {
	// Commands are the commands that the line runs, in their order.
	Commands []Command
	// Pipes lists the line's pipelines.
	Pipes []Pipe
}

// Command is one command, without wrappers such as env or nohup.
type Command struct {
	Words []string
	// Env contains the variables that the line sets for the command, as KEY=value. If a name
	// occurs several times, the last value counts.
	Env []string
	// Sure is set if no branch, loop or function around the command can skip it.
	Sure bool
	// Plain is set if the command ends the line, so that an argument can be appended to the
	// line.
	Plain bool
}

// Name returns the base name of the command's program.
func (c *Command) Name() string { return path.Base(c.Words[0]) }

// Lookup returns a variable of the command: the value that the line sets, or else the
// value in env.
func (c *Command) Lookup(env []string, name string) (value string, ok bool) {
	if value, ok = Lookup(c.Env, name); ok {
		return value, true
	}
	return Lookup(env, name)
}

// Pipe is a pipeline.
type Pipe struct {
	Text     string    // as written in the script
	Commands []Command // the last command of each part
	// Failing is set if the pipeline fails when any part fails, as with pipefail.
	Failing bool
}

// Parse splits a command line that is started with the variables env.
func Parse(argv, env []string) Line {
	r := &reader{vars: map[string]string{}}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			r.vars[name] = value
		}
	}
	r.command(argv[:min(len(argv), maxWords)], nil, true, true)
	return r.line
}

// reader collects the commands of a line.
type reader struct {
	line     Line
	vars     map[string]string // variables with known values
	exported []string          // KEY=value that the script exports
	pipefail bool
	script   string
	depth    int
}

// command adds the command that words stand for. If the words start a shell, it adds the
// commands of the shell's script.
func (r *reader) command(words, env []string, sure, plain bool) {
	words, more := unwrap(words)
	env = slices.Concat(env, more)
	if len(words) == 0 || len(r.line.Commands) >= maxLines {
		return
	}
	if script, pipefail, is := scriptOf(words); is {
		r.shell(script, env, sure, pipefail)
		return
	}
	r.line.Commands = append(r.line.Commands, Command{
		Words: words, Env: slices.Concat(r.exported, env), Sure: sure, Plain: plain,
	})
}

// shell adds the commands of a nested shell's script.
func (r *reader) shell(script string, env []string, sure, pipefail bool) {
	if r.depth >= maxDepth || len(script) > maxScript {
		return
	}
	inner := &reader{vars: map[string]string{}, exported: slices.Concat(r.exported, env), pipefail: pipefail, depth: r.depth + 1}
	for name, value := range r.vars {
		inner.vars[name] = value
	}
	for _, kv := range inner.exported {
		name, value, _ := strings.Cut(kv, "=")
		inner.vars[name] = value
	}
	inner.read(script, sure)
	r.line.Commands = append(r.line.Commands, inner.line.Commands...)
	r.line.Pipes = append(r.line.Pipes, inner.line.Pipes...)
}

// shells are programs that run a script given by -c.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh"}

// scriptOf returns the script of sh -c "..." and of eval. pipefail is set if the shell
// was started with pipefail.
func scriptOf(words []string) (script string, pipefail, is bool) {
	name := path.Base(words[0])
	if name == "busybox" && len(words) > 1 {
		words = words[1:]
		name = words[0]
	}
	if name == "eval" {
		return strings.Join(words[1:], " "), false, true
	}
	if !slices.Contains(shells, name) {
		return "", false, false
	}
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-o" || w == "+o" || w == "-O" || w == "--rcfile" || w == "--init-file":
			if i++; i < len(words) && w == "-o" && words[i] == "pipefail" {
				pipefail = true
			}
		case strings.HasPrefix(w, "--"):
		case strings.HasPrefix(w, "-") && len(w) > 1:
			if strings.Contains(w, "o") && i+1 < len(words) && words[i+1] == "pipefail" { // -eo pipefail
				pipefail = true
				i++
			}
			if strings.Contains(w, "c") {
				for i++; i < len(words) && strings.HasPrefix(words[i], "-"); i++ { // options may follow -c
					if words[i] == "-o" && i+1 < len(words) {
						i++
						pipefail = pipefail || words[i] == "pipefail"
					}
				}
				if i < len(words) {
					return words[i], pipefail, true
				}
				return "", false, false
			}
		default:
			return "", false, false // a script file
		}
	}
	return "", false, false
}

// Lookup returns the value of a variable in env, a list of KEY=value. If the name occurs
// several times, the last value counts.
func Lookup(env []string, name string) (value string, ok bool) {
	for _, kv := range slices.Backward(env) {
		if v, found := strings.CutPrefix(kv, name+"="); found {
			return v, true
		}
	}
	return "", false
}
