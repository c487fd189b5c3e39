// Package elsewhere lists the commands and flags of docker, Slurm, gflow, task-spooler
// and pueue that carma has under another name, or lacks. It only returns the replacement:
// these words mean too much in the other programs to be executed here.
package elsewhere

import (
	"slices"
	"strconv"
	"strings"
)

// Word is a command or a flag of another runner.
type Word struct {
	// Name is the command with its subcommand, "scontrol hold", or the flag without its
	// dashes.
	Name string
	// Write is the replacement: a command line of carma, or a flag with its value. It is
	// empty if carma has no equivalent.
	Write string
	// Say is a remark, or the reason why carma has no equivalent.
	Say string
}

// Hint returns the replacement for w.
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

// Flags returns the flags of other runners that users pass to a command of carma.
func Flags(command string) []Word { return flags[command] }

// Command returns the entry for a command line. The longest name counts: "scontrol hold
// 17" is "scontrol hold" before "scontrol". Task numbers after the command replace the
// numbers in the example.
func Command(args []string) (Word, bool) {
	for n := min(len(args), 3); n > 0; n-- {
		if w, is := named(commands, strings.Join(args[:n], " ")); is {
			w.Write = withTasks(w.Write, args[n:])
			return w, true
		}
	}
	return Word{}, false
}

// withTasks replaces the task in an example by others, if tasks contains only numbers.
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

// Flag returns the entry for a flag, without its dashes, that was passed to a command of
// carma.
func Flag(command, name string) (Word, bool) { return named(flags[command], name) }

func named(all []Word, name string) (Word, bool) {
	for _, w := range all {
		if w.Name == name {
			return w, true
		}
	}
	return Word{}, false
}
