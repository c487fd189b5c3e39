// Package elsewhere knows the commands and flags of docker, Slurm, gflow, task-spooler
// and pueue that carma has under another name, or has not. It only says what to write
// instead: a word of theirs means too much there to be obeyed here.
package elsewhere

import (
	"slices"
	"strconv"
	"strings"
)

// Word is a command or a flag of another runner.
type Word struct {
	// Name is the command with its own commands behind it, "scontrol hold", or the
	// flag without its dashes.
	Name string
	// Write is the replacement: a command line of carma, or a flag with its value. It is
	// empty if carma has nothing like it.
	Write string
	// Say is a remark, or the reason why carma has nothing like it.
	Say string
}

// Hint says what to write instead of w.
func (w Word) Hint() string {
	switch {
	case w.Write == "":
		return w.Say
	case w.Say == "":
		return "write " + w.Write
	}
	return "write " + w.Write + "; " + w.Say
}

// Commands returns all commands of other runners.
func Commands() []Word { return commands }

// Flags returns the flags of other runners that people give to a command of carma.
func Flags(command string) []Word { return flags[command] }

// Command finds a command line's command. The longest name counts: "scontrol hold 17" is
// "scontrol hold" before "scontrol". Numbers of tasks behind it take the place of the
// example's.
func Command(args []string) (Word, bool) {
	for n := min(len(args), 3); n > 0; n-- {
		if w, is := named(commands, strings.Join(args[:n], " ")); is {
			w.Write = withTasks(w.Write, args[n:])
			return w, true
		}
	}
	return Word{}, false
}

// withTasks replaces the task in an example by others, if tasks is numbers alone.
func withTasks(write string, tasks []string) string {
	for _, t := range tasks {
		if _, err := strconv.ParseUint(t, 10, 32); err != nil {
			return write
		}
	}
	words := strings.Fields(write)
	i := slices.IndexFunc(words, func(w string) bool { return w == "12" || w == "17" || w == "20" })
	if i < 0 || len(tasks) == 0 {
		return write
	}
	return strings.Join(slices.Replace(words, i, i+1, tasks...), " ")
}

// Flag finds a flag, without its dashes, that somebody gave to a command of carma.
func Flag(command, name string) (Word, bool) { return named(flags[command], name) }

func named(all []Word, name string) (Word, bool) {
	for _, w := range all {
		if w.Name == name {
			return w, true
		}
	}
	return Word{}, false
}
