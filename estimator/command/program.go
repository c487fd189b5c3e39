package command

import (
	"path"
	"slices"
	"strings"

	"carma/internal/lazyregexp"
)

// program is the program that a command starts. The interpreter python and its options are
// not part of it.
type program struct {
	name   string // base name of the file, or the module
	module bool
	python bool
	args   []string
	// title is the name in messages, such as torchrun or python -m torch.distributed.run.
	title string
}

// is reports whether p starts with the one or two words of command.
func (p *program) is(command string) bool {
	first, second, two := strings.Cut(command, " ")
	return p.name == first && (!two || len(p.args) > 0 && p.args[0] == second)
}

var interpreter = lazyregexp.New(`^(python|pypy)[0-9.]*$`)

// programOf returns the program that the words of a command start.
func programOf(words []string) program {
	if len(words) == 0 {
		return program{}
	}
	name := path.Base(words[0])
	if !interpreter().MatchString(name) {
		return program{name: name, title: name, python: strings.HasSuffix(name, ".py"), args: words[1:]}
	}
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-W" || w == "-X":
			i++
		case strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "m") && i+1 < len(words):
			return moduleOf(words[i+1], words[i+2:])
		case strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c"):
			return program{name: "-c", title: "python -c", python: true}
		case strings.HasPrefix(w, "-"):
		default:
			return program{name: path.Base(w), title: path.Base(w), python: true, args: words[i+1:]}
		}
	}
	return program{name: name, title: name, python: true}
}

// wrapModules lists modules that only run another program.
var wrapModules = []string{"cProfile", "profile", "trace", "pdb", "debugpy", "torch.utils.bottleneck", "coverage", "scalene", "memory_profiler", "kernprof"}

func moduleOf(name string, args []string) program {
	if slices.Contains(wrapModules, name) {
		for i, w := range args {
			if strings.HasSuffix(w, ".py") {
				return program{name: path.Base(w), title: path.Base(w), python: true, args: args[i+1:]}
			}
		}
	}
	return program{name: name, module: true, python: true, args: args, title: "python -m " + name}
}

// ordinary lists programs that use no GPU, regardless of their arguments' names.
var ordinary = strings.Fields("[ : true false test echo printf cat cp mv rm mkdir ln ls cd pwd find grep egrep sed awk sort uniq head tail tee wc cut tr date sleep wait kill trap source . export ulimit which touch chmod chown tar gzip gunzip zcat unzip zip curl wget git pip pip3 conda mamba apt apt-get yum dnf apk make cmake gcc g++ nvcc ninja ldconfig ssh scp rsync mount umount hostname whoami id env exit return yes seq nvidia-smi nvtop huggingface-cli hf wandb tensorboard jupyter jupyter-lab jupyter-notebook less more logger ts tqdm pv xargs")

func harmless(name string) bool { return slices.Contains(ordinary, name) }

// option is an option of a program with its value.
type option struct {
	name  string // as written, without dashes and plus signs, with _ for -
	word  string // as written: --nproc-per-node
	value string
	glue  string // a space or = between word and value
}

func (o option) String() string { return strings.TrimSpace(o.word + o.glue + o.value) }

// with returns the text of the option with another value.
func (o option) with(value string) string { return o.word + o.glue + value }

// plain returns an option's name in the form of the tables: without leading dashes, and
// with _ for -.
func plain(word string) string {
	return strings.ReplaceAll(strings.TrimLeft(word, "-+"), "-", "_")
}

// optionsOf reads the options before the first operand. rest begins with that operand.
// switches lists options without a value, pairs options with two values.
func optionsOf(words []string, switches, pairs string) (all []option, rest []string) {
	none, two := strings.Fields(switches), strings.Fields(pairs)
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return all, words[i+1:]
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			return all, words[i:]
		}
		name, value, joined := strings.Cut(w, "=")
		o := option{name: plain(name), word: name, value: value, glue: "="}
		switch {
		case joined, slices.Contains(none, name):
		case slices.Contains(two, name):
			i += 2
		case i+1 < len(words) && (!strings.HasPrefix(words[i+1], "-") || isNumber(words[i+1])) && !isScript(words[i+1]):
			i++
			o.value, o.glue = words[i], " "
		}
		all = append(all, o)
	}
	return all, nil
}

func isNumber(word string) bool { return strings.Trim(word, "-0123456789") == "" && word != "-" }

// isScript reports whether a word after a launcher's option is the launched program rather
// than the option's value.
func isScript(word string) bool {
	return strings.HasSuffix(word, ".py") || interpreter().MatchString(path.Base(word))
}

// named returns the last option that has one of the names.
func named(all []option, names ...string) (option, bool) {
	for _, o := range slices.Backward(all) {
		if slices.Contains(names, o.name) {
			return o, true
		}
	}
	return option{}, false
}
