package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// table is one of test/lab/studies.md or docs/results.md.
type table struct {
	name  string
	first string // title of the first column
	// traces that ship; generated ones if none
	traces []string
	short  []string // of docs/results.md: only these columns, no commands
	own    []column // instead of the columns of every table
	rows   []row
}

// row is one line: what it shows, and the command that measures it. made are flags of
// carma trace generate; if empty, the traces are generated-SEED.
type row struct{ what, policy, flags, made string }

const (
	nothing = "--know nothing --no-repeats"
	turns   = "--sharing time-slicing"
)

// Larger servers get the load that the generated traces are on 4 GPUs; H100s are
// modelled 1.8 times as fast.
const (
	eight = "--tasks 120 --load 2 --gpu-count 8"
	h100  = "--tasks 120 --load 3.6 --gpu-count 8"
)

// simple is the policy without prediction, shortest first.
const simple = "carma/no-prediction"

var shipped = []string{"philly-mix-90", "philly-heavy-60", "philly-t1-60", "philly-t2-60"}

var fourteen = slices.Concat(shipped, []string{
	"generated-1", "generated-2", "generated-3", "generated-4", "generated-5", "generated-6", "generated-7", "generated-8", "generated-9", "generated-10",
})

var tables = []table{
	{name: "readme-first", first: "nothing known", short: []string{"makespan", "mean JCT", "p95 JCT", "above 1.6", "GPU time lost"}, rows: []row{
		{"`carma`", "carma", nothing, ""},
		{"`carma`, 30 % of the tasks need 40 % more memory late in their run", "carma", nothing + growing, ""},
		{"`carma`, no task prints its progress", "carma", nothing + " --truth silent=1", ""},
		{"`carma`, only memory known", "carma", "--know memory --no-repeats", ""},
		{"`carma`, GPUs not shared by MPS but in turns", "carma", nothing + " " + turns, ""},
		{"`carma`, GPUs in turns and without performance counters", "carma", nothing + " " + turns + " --coarse", ""},
		{"CARMA's `OR-MAGM`, no estimates", "OR-MAGM", nothing, ""},
		{"`carma/no-learning`: a task of unknown memory keeps its GPUs", "carma/no-learning", nothing, ""},
	}},
	{name: "readme-less", first: "what differs", short: []string{"makespan", "mean JCT", "p95 JCT", "above 1.6"}, rows: []row{
		{"nothing known; 30 % of the programs take 75 % of a GPU as they start, as JAX does", "carma", nothing + " --truth preallocate=0.3", ""},
		{"nothing known; no performance counters, as on most GeForce and RTX cards", "carma", nothing + " --coarse", ""},
		{"all known; time-slicing, no MPS", "carma", turns, ""},
		{"all known; load 1 instead of 2.1", "carma", "", "--load 1"},
		{"all known; speeds of pairs, run times and activity differ from the prediction (`--truth perturbed`)", "carma", "--truth perturbed", ""},
		{"the same, other draws", "carma", "--truth perturbed,seed=2", ""},
		{"the same, nothing known", "carma", nothing + " --truth perturbed", ""},
		{"the same, nothing known, other draws", "carma", nothing + " --truth perturbed,seed=2", ""},
	}},
	{name: "readme-month", first: "policy", traces: fourteen, short: []string{"makespan", "mean JCT", "p95 JCT", "above 1.6", "energy", "worst", "OOMs"}, rows: []row{
		{"`carma`", "carma", "", ""},
		{"`magm` as carma runs it", "magm", "", ""},
		{"CARMA's `oracle-MAGM`, which knows all peaks", "oracle-MAGM", "", ""},
		{"CARMA's `EST-MAGM` with GPUMemNet", "EST-MAGM:gpumemnet", "", ""},
		{"CARMA's `OR-MAGM`, no estimates", "OR-MAGM", "", ""},
	}},
	{name: "first-day", first: "what is known, and the world", rows: []row{
		{"nothing", "carma", nothing, ""},
		{"memory of 30 % of the tasks grows late by 40 %", "carma", nothing + growing, ""},
		{"programs print no progress", "carma", nothing + " --truth silent=1", ""},
		{"30 % of the programs take 75 % of a GPU first", "carma", nothing + " --truth preallocate=0.3", ""},
		{"GPUs without performance counters", "carma", nothing + " --coarse", ""},
		{"no MPS", "carma", nothing + " " + turns, ""},
		{"no MPS, no counters", "carma", nothing + " " + turns + " --coarse", ""},
		{"only memory", "carma", "--know memory --no-repeats", ""},
		{"nothing; without prediction, shortest first", simple, nothing, ""},
		{"only memory; without prediction", simple, "--know memory --no-repeats", ""},
		{"nothing; without learning while tasks run", "carma/no-learning", nothing, ""},
		{"nothing; recovery only", "OR-MAGM", nothing, ""},
	}},
	{name: "month", first: "what is known, and the policy", rows: []row{
		{"all", "carma", "", ""},
		{"nothing, but tasks repeat", "carma", "--know nothing", ""},
		{"memory, and tasks repeat", "carma", "--know memory", ""},
		{"no MPS", "carma", turns, ""},
		{"all; without prediction, shortest first", simple, "", ""},
		{"all; `magm` as carma runs it", "magm", "", ""},
		{"all; `lug` as carma runs it", "lug", "", ""},
		{"true peak, the best preset", "oracle-LUG", "", ""},
		{"true peak", "oracle-MAGM", "", ""},
		{"recovery only", "OR-MAGM", "", ""},
		{"published GPUMemNet", "EST-MAGM:gpumemnet", "", ""},
		{"published GPUMemNet", "carma:gpumemnet", "", ""},
		{"no MPS; without prediction", simple, turns, ""},
	}},
	{name: "truths", first: "how the world differs", rows: []row{
		{"speeds of pairs", "carma", "--truth pair=0.12", ""},
		{"run times", "carma", "--truth time=0.54", ""},
		{"activity", "carma", "--truth activity=0.2", ""},
		{"all three", "carma", "--truth perturbed", ""},
		{"all three, other draws", "carma", "--truth perturbed,seed=2", ""},
		{"all three; without prediction", simple, "--truth perturbed", ""},
		{"all three, nothing known", "carma", nothing + " --truth perturbed", ""},
		{"all three, nothing known, other draws", "carma", nothing + " --truth perturbed,seed=2", ""},
		{"all three, nothing known; without prediction", simple, nothing + " --truth perturbed", ""},
		{"all three, no MPS", "carma", turns + " --truth perturbed", ""},
		{"151 measured pairs", "carma", "--truth pairs=test/lab/fit/pairs.csv", ""},
		{"151 measured pairs, nothing known", "carma", nothing + " --truth pairs=test/lab/fit/pairs.csv", ""},
	}},
	{name: "servers", first: "tasks and server", rows: slices.Concat(
		both("more light tasks", "", "--mix 65/27/8"), both("no light tasks", "", "--mix 0/83/17"), both("3 GPUs", "--gpu-count 3", ""),
		both("8 GPUs", "--gpu-count 8", eight), both("8 H100", "--gpus sim:dgx-h100 --gpu-count 8", h100),
		both("little load", "", "--load 1"),
		both("more light tasks, nothing known", nothing, "--mix 65/27/8"), both("no light tasks, nothing known", nothing, "--mix 0/83/17"),
		both("8 GPUs, nothing known", "--gpu-count 8 "+nothing, eight), both("8 H100, nothing known", "--gpus sim:dgx-h100 --gpu-count 8 "+nothing, h100),
	)},
	{name: "urgent", first: "what is known, tasks and server", own: urgentColumns, rows: slices.Concat(
		making("all", "", ""), making("nothing", nothing, ""), making("all, perturbed", "--truth perturbed", ""), making("nothing, perturbed", nothing+" --truth perturbed", ""),
		making("all, no MPS", turns, ""), making("all, 8 GPUs", "--gpu-count 8", eight), making("all, 64 GiB of host memory", "", "", ",host=64G"),
	)},
	{name: "days", first: "what is known", traces: []string{"philly-day-107", "philly-day-114"}, rows: slices.Concat(
		both("all", "", ""), both("nothing, but tasks repeat", "--know nothing", ""), both("nothing", nothing, ""),
	)},
	{name: "ablation", first: "left out", rows: slices.Concat(
		without("", "", "no-reservation", "no-prediction", "no-slowdown-cap", "no-order", "no-backfill", "no-history"),
		[]row{{"progress that programs print", "carma", "--truth silent=1", ""}},
		without("", ":gpumemnet", "no-ladder", "no-history", "no-shrink", "no-reservation"),
		without(nothing, "", "no-learning", "no-reservation", "no-prediction", "no-slowdown-cap", "no-order", "no-backfill"),
		[]row{{"progress that programs print", "carma", nothing + " --truth silent=1", ""}},
		without(nothing+" --truth growth=0.3", "", "no-learning", "no-slowdown-cap"),
	)},
	{name: "estimators", first: "estimator", traces: shipped, rows: slices.Concat(
		estimators("EST-MAGM:", "oracle-MAGM", "nothing"), estimators("carma:", "carma:oracle", "none"),
	)},
}

// making is policy carma with a tenth of the tasks urgent, without and with making way.
func making(what, flags, made string, host ...string) []row {
	flags = strings.TrimSpace(flags + " --urgent 0.1 --suspend 5GB/s" + strings.Join(host, ""))
	return []row{{what, "carma", flags, made}, {what, "carma/make-way", flags, made}}
}

// both is policy carma and, under the same conditions, the one without prediction.
func both(what, flags, made string) []row {
	return []row{{what, "carma", flags, made}, {what, simple, flags, made}}
}

// leftOut lists the part that each preset of the ablation omits.
var leftOut = map[string]string{
	"no-reservation": "booking: what the last sample shows in use counts as taken", "no-prediction": "the interference model: magm, SMACT cap 0.80, warm-up",
	"no-slowdown-cap": "the cap on slowdown", "no-order": "shortest first: first come, first served", "no-backfill": "overtaking of the first task that does not fit",
	"no-history": "learning from earlier runs", "no-ladder": "recovery beside others: on an idle GPU, nothing else starts", "no-shrink": "cutting grants to what is used",
	"no-learning": "joining tasks of unknown memory",
}

// without are policy carma and its presets that lack one ingredient.
func without(flags, estimator string, names ...string) []row {
	list := []row{{"nothing", "carma" + estimator, flags, ""}}
	for _, name := range names {
		list = append(list, row{leftOut[name], "carma/" + name + estimator, flags, ""})
	}
	return list
}

// estimators returns a policy under each estimator.
func estimators(policy, oracle, none string) []row {
	list := []row{{"true peak", oracle, "", ""}}
	for _, name := range []string{"carma", "horus", "faketensor", "gpumemnet"} {
		what := name + ", published"
		if name == "carma" {
			what = "carma's own"
		}
		list = append(list, row{what, policy + name, "", ""})
	}
	list = append(list, row{"none", policy + none, "", ""})
	for _, name := range []string{"gpumemnet", "horus", "faketensor", "dnnmem", "llmem", "deepspeed"} {
		list = append(list, row{name + ", computed", policy + "computed:" + name, "", ""})
	}
	return list
}

// traces returns the names or files that a row replays.
func (l *lab) traces(t table, r row) ([]string, error) {
	if t.traces != nil {
		return t.traces, nil
	}
	var list []string
	for seed := l.from; seed < l.from+l.count; seed++ {
		name := fmt.Sprintf("generated-%d", seed)
		if r.made != "" {
			name = filepath.Join(l.folder, fmt.Sprintf("made-%s-%d.yaml", strings.NewReplacer("/", "-", " ", "-").Replace(r.made), seed))
			if _, err := os.Stat(name); err != nil {
				args := slices.Concat([]string{"trace", "generate", "--seed", fmt.Sprint(seed), "--out", name}, strings.Fields(r.made))
				if _, err := l.output(args); err != nil {
					return nil, err
				}
			}
		}
		list = append(list, name)
	}
	return list, nil
}

// commands lists the commands to type for the table, a line each.
func (l *lab) commands(t table) []string {
	var list []string
	add := func(line string) {
		if !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	for _, r := range t.rows {
		switch {
		case t.traces != nil:
			add(fmt.Sprintf("carma replay %s --policy POLICY FLAGS", strings.Join(t.traces, " ")))
		case r.made != "":
			add(fmt.Sprintf("for s in {%d..%d}; do carma trace generate --seed $s TRACES --out made-$s.yaml; done", l.from, l.from+l.count-1))
			add("carma replay made-*.yaml --policy POLICY FLAGS")
		default:
			add(fmt.Sprintf("carma replay generated-{%d..%d} --policy POLICY FLAGS", l.from, l.from+l.count-1))
		}
	}
	return list
}
