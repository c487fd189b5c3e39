package command

import (
	"fmt"
	"strings"
)

// Asked is a task's request for GPUs.
type Asked struct {
	// GPUs is the requested number of GPUs, or the default number.
	GPUs int
	// Given is set if the submitter gave the number, None if the submitter requested no
	// GPUs.
	Given, None bool
	// Most is the largest number of GPUs that a task can have here, or 0 if unknown.
	Most int
}

// Fit is the result of comparing a command line with the GPUs that its task requests.
type Fit struct {
	// GPUs is the number of GPUs, as requested or as read from the command.
	GPUs int
	// Taken contains the words of the command from which GPUs was read, or is empty.
	Taken string
	// Refusal is the reason why the command cannot work, with an alternative, or empty.
	Refusal string
	// Lines are messages to the submitter: the words from which GPUs was read, and possible
	// mistakes.
	Lines []string
}

// Fit compares the demands of a command line with the GPUs that its task requests. Only
// [Sure] demands cause a refusal. If the submitter gave no number of GPUs, [Likely]
// demands set it.
func (r *Reading) Fit(a Asked) Fit {
	fit := Fit{GPUs: a.GPUs}
	if a.None {
		return fit
	}
	if !a.Given {
		if r.take(&fit, a); fit.Refusal != "" {
			return fit
		}
	}
	most := 0
	for i := range r.Demands {
		d := &r.Demands[i]
		switch {
		case d.Count > 0 && d.beyond(fit.GPUs) && d.Certainty == Sure:
			fit.Refusal = d.refusal(fit.GPUs)
			return fit
		case d.Count > 0 && d.beyond(fit.GPUs):
			fit.Lines = append(fit.Lines, d.doubt(fit.GPUs))
		}
		if d.All || d.Certainty < Sure && !d.Default { // the command may use all GPUs
			most = fit.GPUs
		}
		most = max(most, d.Count)
	}
	if idle := r.idle(fit.GPUs, most); idle != "" && (a.Given || len(fit.Lines) == 0) {
		fit.Lines = append(fit.Lines, idle)
	}
	if r.NoGPU != "" {
		fit.Lines = append(fit.Lines, r.NoGPU+" hides the task's GPUs from its program; --gpus 0 books none")
	}
	if _, which, is := strings.Cut(r.Machine, "="); is {
		fit.Lines = append(fit.Lines, r.Machine+" hides the task's GPUs if it gets others; leave it out, --gpus device="+which+" asks for these")
	}
	return fit
}

// take sets the number of GPUs to the largest likely demand of the command.
func (r *Reading) take(fit *Fit, a Asked) {
	var best *Demand
	for i := range r.Demands {
		if d := &r.Demands[i]; d.Certainty >= Likely && !d.gap() && (best == nil || d.Count > best.Count) {
			best = d
		}
	}
	switch {
	case best == nil || best.Count <= fit.GPUs:
	case a.Most > 0 && best.Count > a.Most && best.Certainty == Sure:
		fit.Refusal = fmt.Sprintf("%s %s, and a task here can have %s; write %s", best.From, best.does(), gpus(a.Most), best.write(a.Most))
	case a.Most > 0 && best.Count > a.Most:
	default:
		fit.GPUs, fit.Taken = best.Count, best.From
		fit.Lines = append(fit.Lines, fmt.Sprintf("--gpus %d, from %s", best.Count, best.From))
	}
}

// idle returns a message if a command's demands leave GPUs idle. most is the largest
// number of GPUs that a demand uses.
func (r *Reading) idle(given, most int) string {
	if most == 0 || most >= given {
		return ""
	}
	for i := range r.Demands {
		d := &r.Demands[i]
		switch {
		case d.Count < most || d.Kind == Index && d.Count < 2: // a single index may mean something else
		case d.Default:
			return fmt.Sprintf("%s starts one process, and the task gets %s; write %s to use them", d.From, gpus(given), d.write(given))
		default:
			return fmt.Sprintf("%s %s, and the task gets %s: the others may stay idle; write %s, or --gpus %d", d.From, d.does(), gpus(given), d.write(given), d.Count)
		}
	}
	return ""
}

func gpus(n int) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}

// does describes a demand, such as "uses 2 GPUs".
func (d *Demand) does() string {
	switch {
	case d.Kind == Processes && d.Count == 1:
		return "starts one process"
	case d.Kind == Processes:
		return fmt.Sprintf("starts %d processes with a GPU each", d.Count)
	case d.Kind == Number:
		return "uses " + gpus(d.Count)
	case d.Count > 1:
		return "names " + gpus(d.Count)
	}
	return fmt.Sprintf("names GPU %d", d.Highest)
}

// sees describes the indexes by which a task sees its n GPUs.
func sees(n int) string {
	if n == 1 {
		return "the task gets 1 GPU, which it sees as GPU 0"
	}
	return fmt.Sprintf("the task gets %d GPUs, which it sees as GPUs 0 to %d", n, n-1)
}

// machines returns the indexes in the form of --gpus device=.
func (d *Demand) machines() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(d.set), " ", ","), "[]")
}

// refusal returns the reason why n GPUs cannot meet a demand, and an alternative.
func (d *Demand) refusal(n int) string {
	what := d.From + " " + d.does() + ", and "
	switch {
	case d.Kind == Visible && d.gap():
		text := what + sees(n) + ": leave it out"
		if d.Count > 1 {
			text += fmt.Sprintf(" and write --gpus %d", d.Count)
		}
		if d.Count == 1 {
			return text + fmt.Sprintf("; --gpus device=%s asks for GPU %[1]s of the machine", d.machines())
		}
		return text + "; --gpus device=" + d.machines() + " asks for these of the machine"
	case d.Kind == Index && d.gap():
		text := what + sees(n) + ": write " + d.write(d.Count)
		if d.Count > n {
			return text + fmt.Sprintf(" and --gpus %d", d.Count)
		}
		return text + fmt.Sprintf(", or --gpus %d", d.Highest+1)
	case d.Kind == Visible:
		return what + sees(n) + fmt.Sprintf(": write --gpus %d, or leave it out", d.Count)
	case d.Kind == Index:
		return what + sees(n) + fmt.Sprintf(": write --gpus %d, or %s", d.Count, d.write(n))
	}
	return what + fmt.Sprintf("the task gets %s: write --gpus %d, or %s", gpus(n), d.Count, d.write(n))
}

// doubt does the same as refusal for an uncertain demand.
func (d *Demand) doubt(n int) string {
	if d.gap() {
		return fmt.Sprintf("%s may name a GPU by its index, and %s; write %s, or --gpus %d", d.From, sees(n), d.write(d.Count), d.Highest+1)
	}
	return fmt.Sprintf("%s may use %s, and the task gets %s; if it does, write --gpus %d", d.From, gpus(d.Count), gpus(n), d.Count)
}

// Notes returns messages about the command line that do not concern the number of GPUs.
func (r *Reading) Notes() (lines []string) {
	if r.Nodes != nil {
		lines = append(lines, fmt.Sprintf("%s: a task runs on one machine, and its launcher waits for %s; leave that out, or see to the others yourself", r.Nodes.From, r.Nodes.Value))
	}
	for i, text := range r.Pipes {
		if i == 3 {
			break
		}
		lines = append(lines, fmt.Sprintf("the exit code of %q is that of its last part, so a failed program counts as success; write set -o pipefail in front (bash), or leave the pipe out: carma logs keeps all output", clip(text)))
	}
	return lines
}

// clip shortens a text for a line.
func clip(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:60], "") + " ... " + strings.ToValidUTF8(text[len(text)-15:], "")
	}
	return text
}
