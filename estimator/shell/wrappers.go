package shell

import (
	"path"
	"slices"
	"strings"
)

// wrapper describes a program that only starts another program. The command of the other
// program follows the wrapper's own arguments.
type wrapper struct {
	// second is a word that must follow the wrapper's name, such as run, or empty.
	second string
	// valued lists the options that take the next word as value, separated by spaces.
	valued string
	// operands is the number of the wrapper's operands before the program.
	operands int
	// marked is set if the program follows the word -- or --args.
	marked bool
	// python is set if the wrapper starts python for a script or for -m.
	python bool
}

var wrappers = map[string][]wrapper{
	"exec": {{valued: "-a"}}, "command": {{}}, "builtin": {{}}, "nohup": {{}}, "setsid": {{}}, "unbuffer": {{}}, "catchsegv": {{}}, "dumb-init": {{valued: "-r --rewrite"}},
	"time": {{valued: "-f -o --format --output"}}, "nice": {{valued: "-n --adjustment"}}, "ionice": {{valued: "-c -n -p --class --classdata"}},
	"timeout": {{valued: "-s -k --signal --kill-after", operands: 1}}, "stdbuf": {{valued: "-i -o -e --input --output --error"}}, "chrt": {{operands: 1}},
	"taskset": {{operands: 1}}, "numactl": {{valued: "-C -m -N -p -i --cpunodebind --membind --physcpubind --interleave --preferred"}},
	"tini": {{valued: "-e -p"}}, "catatonit": {{}}, "gosu": {{operands: 1}}, "su-exec": {{operands: 1}}, "s6-setuidgid": {{operands: 1}}, "setpriv": {{}},
	"sudo": {{valued: "-u -g -h -p -C -U --user --group"}}, "xvfb-run": {{valued: "-e -f -n -p -s -w --server-args --server-num --auth-file --error-file"}}, "dbus-run-session": {{}},
	"strace": {{valued: "-o -e -p -s -u -E"}}, "ltrace": {{valued: "-o -e -p -s -u"}}, "gdb": {{marked: true}}, "cuda-gdb": {{marked: true}},
	"nsys": {{second: "profile", valued: nsysValued}}, "ncu": {{valued: "-o --export -k --kernel-name --set --section -c --launch-count -s --launch-skip --target-processes --metrics --log-file"}}, "nvprof": {{valued: "-o --log-file --metrics"}},
	"compute-sanitizer": {{valued: "--tool --log-file"}}, "cuda-memcheck": {{valued: "--tool --log-file"}}, "py-spy": {{second: "record", marked: true}}, "memray": {{second: "run", valued: "-o --output"}},
	"conda": {{second: "run", valued: condaValued}}, "mamba": {{second: "run", valued: condaValued}}, "micromamba": {{second: "run", valued: condaValued}},
	"uv":  {{second: "run", valued: "--with --python -p --project --extra --group --env-file --directory --index --with-requirements --with-editable --package --index-url --extra-index-url", python: true}},
	"uvx": {{valued: "--from --with --python -p --index --index-url --extra-index-url"}}, "pipx": {{second: "run", valued: "--spec --python --pip-args"}},
	"poetry": {{second: "run"}}, "pipenv": {{second: "run"}}, "pdm": {{second: "run", valued: "-p --project"}}, "hatch": {{second: "run"}}, "rye": {{second: "run"}},
	"pixi":        {{second: "run", valued: "-e --environment --manifest-path"}},
	"singularity": {{second: "exec", valued: singularityValued, operands: 1}, {second: "run", valued: singularityValued, operands: 1}},
	"apptainer":   {{second: "exec", valued: singularityValued, operands: 1}, {second: "run", valued: singularityValued, operands: 1}},
	"ray":         {{second: "job", marked: true}}, "dotenv": {{second: "run"}}, "doppler": {{second: "run", marked: true}}, "trtllm-llmapi-launch": {{}}, "start-cuda-mps.sh": {{}},
}

const (
	nsysValued        = "-o --output -t --trace -s --sample -c --capture-range -d --duration -y --delay -w --show-output -f --force-overwrite -e --env-var --stats --cudabacktrace --cuda-memory-usage --capture-range-end --gpu-metrics-device --cuda-graph-trace --session-new"
	condaValued       = "-n --name -p --prefix --cwd"
	singularityValued = "-B --bind -H --home --env --env-file --pwd -W --workdir --overlay -S --scratch --app --nvccli -c --fusemount --mount"
)

// Runs reports whether a program is a shell or a wrapper.
func Runs(name string) bool {
	return name == "env" || slices.Contains(shells, name) || len(wrappers[name]) > 0
}

// unwrap removes all wrappers in front of a command. It returns the command and the
// variables that the wrappers set.
func unwrap(words []string) (rest, env []string) {
	for range maxDepth {
		if len(words) < 2 {
			return words, env
		}
		next, more, is := peel(words)
		if !is || len(next) == 0 {
			return words, env
		}
		words, env = next, append(env, more...)
	}
	return words, env
}

// peel removes the first wrapper of a command.
func peel(words []string) (rest, env []string, is bool) {
	name := path.Base(words[0])
	if name == "env" {
		rest, env = behindEnv(words[1:])
		return rest, env, true
	}
	if isEntrypoint(name) && !strings.HasPrefix(words[1], "-") {
		return words[1:], nil, true
	}
	for _, w := range wrappers[name] {
		from := 1
		if w.second != "" {
			if from = slices.Index(words, w.second) + 1; from == 0 || from > 4 {
				continue
			}
		}
		rest, env := w.behind(words[from:])
		if w.python && len(rest) > 0 && (rest[0] == "-m" || strings.HasSuffix(rest[0], ".py")) {
			rest = append([]string{"python"}, rest...)
		}
		return rest, env, len(rest) > 0
	}
	return nil, nil, false
}

// isEntrypoint reports whether a script is named like an image's entrypoint, which usually
// ends with exec "$@".
func isEntrypoint(name string) bool {
	return strings.HasSuffix(name, ".sh") && (strings.Contains(name, "entrypoint") || strings.Contains(name, "entry_point") || name == "entry.sh" || name == "_entrypoint.sh")
}

// behind returns the words after the wrapper's own arguments, and the variables that the
// wrapper sets.
func (w *wrapper) behind(words []string) (rest, env []string) {
	if w.marked {
		for i, word := range words {
			if word == "--" || word == "--args" {
				return words[i+1:], nil
			}
		}
		return nil, nil
	}
	valued := strings.Fields(w.valued)
	operands := w.operands
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--" && operands == 0:
			return words[i+1:], env
		case word == "--":
		case w.python && (word == "-m" || word == "--module"):
			return append([]string{"-m"}, words[i+1:]...), env
		case strings.HasPrefix(word, "-") && len(word) > 1:
			name, value, joined := strings.Cut(word, "=")
			if slices.Contains(valued, name) && !joined && i+1 < len(words) {
				i++
				value = words[i]
			}
			if name == "--env" {
				env = append(env, strings.Split(value, ",")...)
			}
		case operands > 0:
			operands--
		default:
			return words[i:], env
		}
	}
	return nil, env
}

// behindEnv reads the arguments of env [-i] [-u NAME] [NAME=value ...] program. After -S,
// one word contains all further arguments.
func behindEnv(words []string) (rest, env []string) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-u" || word == "--unset" || word == "-C" || word == "--chdir":
			i++
		case (word == "-S" || word == "--split-string") && i+1 < len(words):
			return behindEnv(append(strings.Fields(words[i+1]), words[i+2:]...))
		case strings.HasPrefix(word, "-"):
		case strings.Contains(word, "="):
			env = append(env, word)
		default:
			return words[i:], env
		}
	}
	return nil, env
}
