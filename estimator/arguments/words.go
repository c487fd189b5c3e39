package arguments

import (
	"path"
	"slices"
	"strings"
)

// longest bounds the work on one command line, in words.
const longest = 4096

// flat is a command line without shells: of sh -c "..." the words within.
func flat(command []string) []string {
	for i, word := range command {
		if i+1 < len(command) && strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") && strings.HasSuffix(word, "c") && i > 0 && isShell(command[i-1]) {
			return lastCommand(shellWords(command[i+1]))
		}
	}
	return command[:min(len(command), longest)]
}

func isShell(word string) bool {
	switch path.Base(word) {
	case "sh", "bash", "dash", "zsh":
		return true
	}
	return false
}

// lastCommand is the command that trains, of several in a line: the one with the most
// words.
func lastCommand(words []string) []string {
	var best, now []string
	target := false // the next word is a file that output goes to
	for _, w := range append(words, ";") {
		redirects := strings.HasPrefix(strings.TrimLeft(w, "012&"), ">") || strings.HasPrefix(w, "<")
		switch {
		case slices.Contains([]string{";", "&&", "||", "|", "&", "exec"}, w):
			if len(now) >= len(best) {
				best = now
			}
			now, target = nil, false
		case redirects:
			target = strings.Trim(w, "012&<>") == "" // with nothing behind the sign
		case target:
			target = false
		default:
			now = append(now, w)
		}
	}
	return best
}

// shellWords splits a line as a shell does: quotes and backslashes hold words together.
// Nothing is expanded; a word with a $ stays as it is, and no number is read from it.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for _, c := range line {
		if len(words) >= longest {
			return words
		}
		switch {
		case escaped:
			if c != '\n' { // which goes on in the next line
				word.WriteRune(c)
				inWord = true
			}
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			end()
		case c == ';' || c == '\n':
			end()
			words = append(words, ";")
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	end()
	return words
}

// argument is one argument of a program: --name value, --name=value or --name.
type argument struct {
	name   string // in small letters, with _ for -
	values []string
}

// value is its first value; empty: it has none.
func (a *argument) value() string {
	if len(a.values) == 0 {
		return ""
	}
	return a.values[0]
}

// on reports whether a switch is on. A switch without a value is.
func (a *argument) on() bool {
	switch strings.ToLower(a.value()) {
	case "", "1", "true", "yes", "y", "t", "on":
		return true
	}
	return false
}

// parsed are the arguments among words. Words in front of the first are left out.
func parsed(words []string) (all []argument) {
	for _, w := range words {
		name, value, assigned := strings.Cut(w, "=")
		switch {
		case len(name) > 2 && strings.HasPrefix(name, "--"):
			a := argument{name: normal(name[2:])}
			if assigned {
				a.values = []string{value}
			}
			all = append(all, a)
		case len(all) > 0:
			last := &all[len(all)-1]
			last.values = append(last.values, w)
		}
	}
	return all
}

func normal(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "_")) }

// split divides a command line into the launcher's words and the program's, from the
// script on. A python script has no launcher.
func split(words []string) (launcher, program []string) {
	for i, w := range words {
		base := path.Base(w)
		if strings.HasSuffix(base, ".py") || w == "-m" && !(i+1 < len(words) && isLauncher(words[i+1])) {
			return words[:i], words[i:]
		}
	}
	return nil, words
}

func isLauncher(module string) bool {
	switch module {
	case "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner":
		return true
	}
	return false
}
