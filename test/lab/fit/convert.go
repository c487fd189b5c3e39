//go:build ignore

// Convert writes pairs.csv and profiles.csv, from which the shipped
// coefficients are fitted, from the tables that were drawn from AEGIS:
//
//	go run convert.go FOLDER    (in test/lab/fit)
//
// FOLDER holds pairwise-slowdown.csv and solo-profiles.csv. Only what the fit
// needs is taken: profiles that a pair names, columns that are read.
package main

import (
	"bytes"
	"encoding/csv"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const source = `# Written by convert.go; do not edit.
# Facts and figures of GitHub ehsanyousefzadehasl/AEGIS, `

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run convert.go FOLDER")
	}
	used := map[string]bool{}
	write("pairs.csv", filepath.Join(os.Args[1], "pairwise-slowdown.csv"),
		source+"calibration runs of its Lucid baseline on a DGX Station A100 (A100 40 GB):\n"+
			"# two tasks started together on one GPU, and their progress relative to running alone while both ran.\n",
		[]string{"solo_profile_a", "solo_profile_b", "overlap_speed_a", "overlap_speed_b"},
		func(values []string) bool {
			used[values[0]], used[values[1]] = true, true
			return true
		})
	write("profiles.csv", filepath.Join(os.Args[1], "solo-profiles.csv"),
		source+"solo profiles on a DGX Station A100 (A100 40 GB): the tasks of\n"+
			"# pairs.csv alone. Activity is a mean over the run, 0 to 1, by DCGM.\n",
		[]string{"workload_id", "model", "dataset", "batch_size", "epochs", "gpus", "train_loop_s", "smact_mean", "smocc_mean", "drama_mean"},
		func(values []string) bool { return used[values[0]] })
}

// write copies columns of the rows that keep wants.
func write(to, from, head string, columns []string, keep func(values []string) bool) {
	f, err := os.Open(from)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		log.Fatalf("%s: %v", from, err)
	}
	b := bytes.NewBufferString(head + strings.Join(columns, ",") + "\n")
	for _, row := range rows[1:] {
		var values []string
		for _, c := range columns {
			values = append(values, row[slices.Index(rows[0], c)])
		}
		if keep(values) {
			b.WriteString(strings.Join(values, ",") + "\n")
		}
	}
	if err := os.WriteFile(to, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
