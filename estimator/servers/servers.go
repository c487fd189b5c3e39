package servers

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"carma/estimator/shell"
)

// Program contains the known facts about a task's program.
type Program struct {
	Image string // image reference
	// Entrypoint and Command are the task's own. If one is empty, the image's applies.
	Entrypoint, Command []string
	// Env contains the variables of the image and of the task as KEY=value. If a name occurs
	// several times, the last value counts.
	Env []string
	// Grows is set if the settings of frameworks make them allocate memory on demand, unless
	// the task or its image overrides that.
	Grows bool
}

// Found is a recognised program.
type Found struct {
	// Name is the program's name. By is the evidence by which it was recognised, such as
	// "command vllm serve".
	Name, By string
	// Share is the part of a GPU's whole memory that the program takes, from 0 to 1, or 0 if
	// unknown. Beside is additional memory that it takes, in bytes. From names the setting
	// or the default from which Share comes.
	Share  float64
	Beside int64
	From   string
	// Flag or Variable names a setting of the share that the task does not set and that
	// the caller may add. The caller subtracts Less from the share before it sets Flag.
	Flag, Variable string
	Less           float64
	// Note is a sentence for the case in which no share is allocated.
	Note string
}

// ShareError reports a setting whose value is not a share above 0 and at most 1.
type ShareError struct{ Program, Setting, Value string }

func (e *ShareError) Error() string {
	return fmt.Sprintf("%s %s: %s takes a number above 0, at most 1; write for example %s 0.5", e.Setting, strconv.Quote(e.Value), e.Program, e.Setting)
}

// Recognise returns the known program that takes a share of a GPU, or false if p runs no
// such program. The error is a [ShareError].
func Recognise(p Program) (f Found, ok bool, err error) {
	words, plain := p.words()
	for i := range table {
		k := &table[i]
		by := k.recognised(&p, words)
		if by == "" {
			continue
		}
		f = Found{Name: k.name, By: by}
		if err := k.read(&f, &p, words, plain); err != nil {
			return Found{}, false, err
		}
		return f, f.Share > 0 || f.Note != "", nil
	}
	return Found{}, false, nil
}

// words returns the words of all commands in entrypoint and command. plain is set if a
// flag can be added at the end of the command line.
func (p *Program) words() (words []string, plain bool) {
	line := shell.Parse(slices.Concat(p.Entrypoint, p.Command), p.Env)
	plain = true
	for i := range line.Commands {
		words = append(words, line.Commands[i].Words...)
		plain = plain && line.Commands[i].Plain
	}
	return words, plain
}

// recognised returns the evidence that the program is k, or "" if there is none.
func (k *kind) recognised(p *Program, words []string) string {
	for i, w := range words {
		w = path.Base(w)
		for _, c := range k.commands {
			name, second, two := strings.Cut(c, " ")
			if w == name && (!two || i+1 < len(words) && words[i+1] == second) {
				return "command " + c
			}
		}
		for _, m := range k.modules {
			if (w == m || strings.HasPrefix(w, m+".")) && i > 0 && words[i-1] == "-m" {
				return "command python -m " + w
			}
		}
	}
	for _, v := range k.variables {
		if _, set := shell.Lookup(p.Env, v); set {
			return "variable " + v
		}
	}
	if len(p.Entrypoint) > 0 && !k.library {
		return "" // another program of k's image
	}
	if repository := repositoryOf(p.Image); slices.ContainsFunc(k.images, func(part string) bool { return named(repository, part) }) {
		return "image " + repository
	}
	return ""
}

// repositoryOf returns an image's repository without host, tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		image = image[:i]
	}
	if host, rest, ok := strings.Cut(image, "/"); ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		image = rest
	}
	return image
}

// named reports whether a part of a repository's path is a name, or begins or ends with
// it: vllm is in vllm/vllm-openai and in ann/my-vllm.
func named(repository, name string) bool {
	for part := range strings.SplitSeq(strings.ToLower(repository), "/") {
		if part == name || strings.HasPrefix(part, name+"-") || strings.HasSuffix(part, "-"+name) || strings.HasPrefix(part, name+"_") || strings.HasSuffix(part, "_"+name) {
			return true
		}
	}
	return false
}

// flag returns the last value of a flag in the words of a command. Dashes and underscores
// in the flag's name are equivalent.
func flag(words []string, names ...string) (value, setting string, set bool) {
	for i, w := range words {
		name, v, joined := strings.Cut(w, "=")
		if dashes := strings.ReplaceAll(name, "_", "-"); !slices.Contains(names, name) && !slices.Contains(names, dashes) {
			continue
		}
		if !joined && i+1 < len(words) {
			v = words[i+1]
		}
		value, setting, set = v, name, true
	}
	return value, setting, set
}

// shareOf parses a share, a number above 0 and at most 1.
func shareOf(program, setting, value string) (float64, error) {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x > 0 && x <= 1) {
		return 0, &ShareError{program, setting, value}
	}
	return x, nil
}

// Sets returns the flag or the variable that sets the share, or empty if none does.
func (f *Found) Sets() string { return cmp.Or(f.Flag, f.Variable) }
