package elsewhere

import (
	"bufio"
	"io"
	"strings"
)

// asFlags maps flags of sbatch and gbatch to flags of carma run whose value has the same
// meaning.
var asFlags = map[string]string{
	"gpus": "--gpus", "G": "--gpus", "gpus-per-node": "--gpus", "gpus-per-task": "--gpus", "cpus-per-task": "--cpus", "c": "--cpus", "mem": "--host-mem", "time": "--time", "t": "--time",
	"job-name": "--name", "J": "--name", "array": "--array", "a": "--array", "account": "--account", "A": "--account", "chdir": "--workdir", "D": "--workdir", "priority": "--priority", "conda-env": "--conda", "gpu-memory": "--mem",
}

// Directives reads the lines for Slurm or gflow at the head of a batch script. mark is
// their prefix, #SBATCH or #GFLOW, or empty if there are none. flags are the
// corresponding flags of carma run, as typed.
func Directives(script io.Reader) (mark string, flags []string) {
	lines := bufio.NewScanner(script)
	for n := 0; n < 200 && lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		word, rest, _ := strings.Cut(line, " ")
		if word != "#SBATCH" && word != "#GFLOW" {
			if line != "" && line[0] != '#' {
				break // like sbatch, stop at the first command
			}
			continue
		}
		mark = word
		rest, _, _ = strings.Cut(rest, " #")
		if flag := directive(strings.Fields(rest)); flag != "" {
			flags = append(flags, flag)
		}
	}
	return mark, flags
}

// directive returns the flag of carma run for a flag of sbatch, or "" if none has the
// same meaning.
func directive(words []string) string {
	if len(words) == 0 {
		return ""
	}
	name, value, _ := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
	if value == "" && len(words) > 1 {
		value = words[1]
	}
	value = strings.Trim(value, `"'`)
	switch name {
	case "exclusive":
		return "--exclusive"
	case "gres": // gpu:2, gpu:a100:2
		parts := strings.Split(value, ":")
		if parts[0] != "gpu" {
			return ""
		}
		if value = parts[len(parts)-1]; len(parts) == 1 {
			value = "1"
		}
		name = "gpus"
	case "gpus", "G", "gpus-per-node", "gpus-per-task": // 2, a100:2
		value = value[strings.LastIndex(value, ":")+1:]
	case "time", "t": // a number without unit is minutes there
		if value != "" && strings.Trim(value, "0123456789") == "" {
			value += "m"
		}
	case "mem": // a number without unit is megabytes there
		if value != "" && strings.Trim(value, "0123456789") == "" {
			value += "M"
		}
	}
	if flag := asFlags[name]; flag != "" && value != "" {
		return flag + " " + value
	}
	return ""
}
