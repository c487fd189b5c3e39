//go:build ignore

// Convert writes the workload profiles in this folder from tables of CARMA's and its
// follow-ups' figures:
//
//	go run convert.go FOLDER    (in configs/workloads)
//
// FOLDER has workloads.csv (one row per task and campaign) and solo-profiles.csv (one row
// per GPU of a run alone). The output is deterministic.
//
// Tasks with equal model, dataset, batch size, epochs and GPUs are one profile with
// several aliases. A solo profile without a task becomes a profile of its own, measured
// in campaign v2 only.
package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type row map[string]string

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run convert.go FOLDER")
	}
	tasks := read(filepath.Join(os.Args[1], "workloads.csv"))
	solos := read(filepath.Join(os.Args[1], "solo-profiles.csv"))
	byModel := map[string][]*profile{}
	for _, p := range profiles(tasks, solos) {
		byModel[p.model] = append(byModel[p.model], p)
	}
	for model, ps := range byModel {
		name := slug(model) + ".yaml"
		if err := os.WriteFile(name, render(model, ps), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func read(path string) []row {
	f, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		log.Fatalf("%s: %v", path, err)
	}
	var rows []row
	for _, line := range lines[1:] {
		r := row{}
		for i, column := range lines[0] {
			r[column] = line[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// profile is one distinct workload with all its rows.
type profile struct {
	model, dataset string
	batch, epochs  int
	gpus           int
	class          string
	aliases        []string
	v1, v2         row   // rows of workloads.csv
	solo           []row // rows of solo-profiles.csv, one per GPU
	lender         row   // if it has no activity, the workload whose activity it uses
	notes          []string
}

func (p *profile) name() string {
	parts := []string{slug(p.model)}
	if !strings.HasPrefix(p.model, p.dataset) {
		parts = append(parts, slug(p.dataset))
	}
	parts = append(parts, "bs"+strconv.Itoa(p.batch))
	if p.epochs > 1 {
		parts = append(parts, strconv.Itoa(p.epochs)+"e")
	}
	if p.gpus > 1 {
		parts = append(parts, strconv.Itoa(p.gpus)+"gpu")
	}
	return strings.Join(parts, "-")
}

func profiles(tasks, solos []row) []*profile {
	byID := map[string][]row{} // solo profiles; the first row is GPU 0
	for _, s := range solos {
		byID[s["workload_id"]] = append(byID[s["workload_id"]], s)
	}
	var all []*profile
	byKey := map[string]*profile{}
	used := map[string]bool{}
	for _, t := range tasks {
		key := strings.Join([]string{t["model"], t["dataset"], t["batch_size"], t["epochs"], t["gpus"]}, "|")
		p := byKey[key]
		if p == nil {
			p = &profile{
				model: t["model"], dataset: t["dataset"], class: t["weight_class"],
				batch: number(t["batch_size"], 0), epochs: number(t["epochs"], 1), gpus: number(t["gpus"], 1),
				solo: byID[t["solo_profile_id"]],
			}
			byKey[key] = p
			all = append(all, p)
		}
		used[t["solo_profile_id"]] = true
		if !slices.Contains(p.aliases, t["task"]) {
			p.aliases = append(p.aliases, t["task"])
		}
		switch v := t["source_version"]; { // of several tasks the first counts, because its name is the best
		case v == "v1" && p.v1 == nil:
			p.v1 = t
		case v == "v2" && p.v2 == nil:
			p.v2 = t
		}
		p.note(t["notes"])
	}
	for _, s := range solos {
		id := s["workload_id"]
		if used[id] {
			continue
		}
		used[id] = true
		p := &profile{
			model: s["model"], dataset: s["dataset"], class: "heavy",
			batch: number(s["batch_size"], 0), epochs: number(s["epochs"], 1), gpus: number(s["gpus"], 1),
			solo: byID[id],
		}
		if p.dataset == "cifar100" {
			p.class = "light"
		}
		p.notes = append(p.notes, "no task of the original: known from its solo profile only, so no estimates and no campaign v1")
		all = append(all, p)
	}
	for _, p := range all {
		if from, ok := sibling[p.model]; ok {
			p.lender = byID[from][0]
		}
	}
	slices.SortFunc(all, func(a, b *profile) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.dataset, b.dataset),
			cmp.Compare(a.batch, b.batch), cmp.Compare(a.epochs, b.epochs))
	})
	return all
}

// shorter replaces texts of the table's notes; "" removes one.
var shorter = map[string]string{
	"README ET column for this model holds the FakeTensor overhead seconds, not minutes per epoch": "the v2 README prints FakeTensor's overhead in place of the run time; not used",
	"use exec_time_best_min":             "",
	".rad kept in measured_mem_gb":       "",
	"README 112.07 min used":             "",
	"the authors' own simulator uses 50": "",
	"used in no trace":                   "used in no trace of the original",
	".rad stops at line 8: no memory lines, so estimator and oracle policies would crash on it": "the original has no memory figures for it: memory is the solo profile's peak",
	"README memory 8.67 GB disagrees with the .rad value 866 MiB":                               "the v2 README says 8.67 GB, the task file 866 MiB, which is used",
	"README memory 2.08 GB disagrees with the .rad value 1074 MiB":                              "the v2 README says 2.08 GB, the task file 1074 MiB, which is used",
	"file name says 50 epochs but the command passes --epochs 20":                               "the alias that says 50 epochs passes 20 to the program",
	"not in the README tables":                                                         "",
	"solo profile id is named bs32 but the script default is 64":                       "its solo profile is named bs32",
	"solo profile shows the second GPU idle (428 MiB, SMACT 0)":                        "the second GPU stays idle (428 MiB, SMACT 0)",
	"solo profile used a smaller configuration (5.6 GB peak), README/.rad say 9.91 GB": "the solo profile ran a smaller configuration (5636 MiB)",
	"summary CSV run took 5.27 min, so it was not the full 90 epochs":                  "",
	"the summary CSV lists 0.0277 min for Mask R-CNN (a crashed or mis-parsed run)":    "the v2 table of runs lists 0.03 min: a crashed run, not used",
	"solo profile peak is 13798 MiB, .rad says 14546":                                  "the solo profile's peak is 13798 MiB",
	"solo profile peak is 13798 MiB, .rad says 19330":                                  "",
	"line 6 of the .rad says batch size 32, the script uses 64":                        "the task file says batch size 32, the program uses 64",
	"line 6 of the .rad says batch size 32, the script uses 8":                         "the task file says batch size 32, the program uses 8",
	"line 6 of the .rad says batch size 128, the script uses 8":                        "the task file says batch size 128, the program uses 8",
	"line 6 of the .rad says batch size 8, the script uses 4":                          "the task file says batch size 8, the program uses 4",
}

func (p *profile) note(notes string) {
	for n := range strings.SplitSeq(notes, ";") {
		n = strings.TrimSpace(n)
		if s, ok := shorter[n]; ok {
			n = s
		}
		if n != "" && !slices.Contains(p.notes, n) {
			p.notes = append(p.notes, n)
		}
	}
}

// sibling maps a workload without activity to the workload whose activity it uses.
var sibling = map[string]string{"gpt2_xl": "gpt2_large_wiki_bs8_2gpu"}

// spellings lists additional names of a model.
var spellings = map[string][]string{
	"bert_base":              {"bert-base-uncased"},
	"bert_large":             {"bert-large-uncased"},
	"efficientnet_b0":        {"efficientnet"},
	"inception_v3":           {"inception"},
	"llama3_width_8layer":    {"llama3"},
	"mask_rcnn_resnet50_fpn": {"mask-rcnn", "maskrcnn_resnet50_fpn"},
	"mnist_cnn":              {"mnist"},
	"vgg16":                  {"vgg"},
	"xlnet_base_cased":       {"xlnet-base"},
	"xlnet_large_cased":      {"xlnet-large"},
}

var slugs = map[string]string{
	"mask_rcnn_resnet50_fpn": "maskrcnn",
	"llama3_width_8layer":    "llama3-8layer",
	"xlnet_base_cased":       "xlnet-base",
	"xlnet_large_cased":      "xlnet-large",
	"pascal_voc":             "voc",
	"criteo_terabyte":        "criteo",
}

func slug(s string) string {
	if short, ok := slugs[s]; ok {
		return short
	}
	return strings.ReplaceAll(s, "_", "-")
}

const header = `# Workload profiles of %s. Written by convert.go; do not edit.
# Facts and figures only, from:
#   v1     GitHub ehsanyousefzadehasl/CARMA (campaign v1: run times, memory, estimates)
#   v2     GitHub itu-rad/CARMA, commit e044017 (campaign v2: memory, estimates)
#   AEGIS  GitHub ehsanyousefzadehasl/AEGIS (solo profiles: activity, run times)
# All measured on one DGX Station A100 (A100 40 GB). The format is in doc.go.
schema: carma/workload/v1
model: %s
`

func render(model string, ps []*profile) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, header, model, model)
	if s := spellings[model]; s != nil {
		fmt.Fprintf(&b, "spellings: [%s]\n", strings.Join(s, ", "))
	}
	b.WriteString("profiles:\n")
	for _, p := range ps {
		p.render(&b)
	}
	return b.Bytes()
}

func (p *profile) render(b *bytes.Buffer) {
	line := func(format string, args ...any) { fmt.Fprintf(b, "    "+format+"\n", args...) }
	fmt.Fprintf(b, "  - name: %s\n", p.name())
	if len(p.aliases) > 0 {
		line("aliases: [%s]", strings.Join(p.aliases, ", "))
	}
	line("dataset: %s", p.dataset)
	line("batch_size: %d", p.batch)
	line("epochs: %d", p.epochs)
	line("gpus: %d", p.gpus)
	line("weight_class: %s", p.class)
	active := p.solo[0]
	notes := p.notes
	if active["smact_mean"] == "" {
		from := sibling[p.model]
		active = p.lender
		notes = append(notes, "activity was not measured: taken from "+from)
	}
	line("activity: {%s}", activity(active))
	line("campaigns:")
	solo := p.solo[0]
	p.campaign(line, "v1", p.v1, solo)
	p.campaign(line, "v2", p.v2, solo)
	est := p.v2
	if est == nil {
		est = p.v1
	}
	if e := estimates(est); e != "" {
		line("estimates_mib: {%s}", e)
	}
	span := ""
	if s := solo["profile_span"]; s != "" {
		span = ", span: " + s
	}
	loop := ""
	if s := solo["train_loop_s"]; s != "" {
		loop = ", train_loop_s: " + s
	}
	line("solo: {id: %s, end_to_end_s: %s%s, peak_mib: %s%s}", solo["workload_id"], solo["end_to_end_s"], loop, solo["peak_mem_mib"], span)
	if len(p.solo) > 1 {
		line("per_gpu:")
		for _, s := range p.solo {
			line("  - {peak_mib: %s, %s}", s["peak_mem_mib"], activity(s))
		}
	} else if p.gpus > 1 {
		notes = append(notes, "one GPU was profiled; the others are taken to be like it")
	}
	if len(notes) > 0 {
		line("notes:")
		for _, n := range notes {
			line("  - %q", n)
		}
	}
}

func (p *profile) campaign(line func(string, ...any), version string, r, solo row) {
	minutes, mib, source := "", "", ""
	switch {
	case r != nil:
		minutes, mib, source = r["exec_time_best_min"], r["rad_actual_mem_mib"], r["exec_time_best_source"]
		source = strings.TrimSuffix(source, " (same measurement campaign as README v1)")
		source = strings.Replace(source, "README per-epoch", "README, minutes per epoch", 1)
		source = strings.Replace(source, "solo profile end-to-end runtime", "AEGIS solo profile, end to end", 1)
		if mib == "" {
			mib = solo["peak_mem_mib"]
		}
	case version == "v2":
		s, err := strconv.ParseFloat(solo["end_to_end_s"], 64)
		if err != nil {
			log.Fatal(err)
		}
		minutes, mib, source = strconv.FormatFloat(s/60, 'f', 2, 64), solo["peak_mem_mib"], "AEGIS solo profile, end to end"
	default:
		return
	}
	line("  %s: {minutes: %s, memory_mib: %s, source: %q}", version, minutes, mib, source)
}

func activity(s row) string {
	out := "smact: " + s["smact_mean"]
	if s["smact_p95"] != "" {
		out += ", smact_p95: " + s["smact_p95"]
	}
	return out + ", smocc: " + s["smocc_mean"] + ", drama: " + s["drama_mean"]
}

// estimates omits 40000, the original's sign for "no estimate".
func estimates(r row) string {
	var out []string
	for _, name := range []string{"horus", "faketensor", "gpumemnet"} {
		v, err := strconv.ParseFloat(r["rad_"+name+"_mib"], 64)
		if err != nil || v >= 40000 {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %.0f", name, v))
	}
	return strings.Join(out, ", ")
}

func number(s string, otherwise int) int {
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		log.Fatal(err)
	}
	return n
}
