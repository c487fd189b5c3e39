//go:build ignore

// Convert writes the traces in this folder from the original's submission
// scripts, drawn as tables:
//
//	go run convert.go FOLDER    (in configs/traces)
//
// FOLDER holds one CSV file per trace with the columns arrival_s (seconds
// since the first line of the script) and task (the original's task name).
// The result depends on nothing else: running it again gives the same bytes.
package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"carma/configs/workloads"
)

const v1v2 = "identical in GitHub ehsanyousefzadehasl/CARMA and itu-rad/CARMA"

var traces = []struct{ name, table, campaign, description, source string }{
	{"smoke-5", "smoke-5.csv", "v2", "five MNIST tasks at once", "test.sh of GitHub itu-rad/CARMA"},
	{"philly-mix-90", "philly_mix-90.csv", "v1", "90 tasks, mostly light; gaps from Microsoft's Philly trace", "philly_mix-90-tasks.sh, " + v1v2},
	{"philly-heavy-60", "philly_heavy-60.csv", "v1", "60 tasks, medium and heavy; gaps from Microsoft's Philly trace", "philly_heavy-60-tasks.sh, " + v1v2},
	{"philly-t1-60", "philly_trace-t1.csv", "v2", "60 tasks, mixed; gaps from Microsoft's Philly trace", "philly_trace-t1.sh of GitHub itu-rad/CARMA"},
	{"philly-t2-60", "philly_trace-t2.csv", "v2", "60 tasks, mixed, further apart; gaps from Microsoft's Philly trace", "philly_trace-t2.sh of GitHub itu-rad/CARMA"},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run convert.go FOLDER")
	}
	for _, t := range traces {
		f, err := os.Open(filepath.Join(os.Args[1], t.table))
		if err != nil {
			log.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		if err != nil {
			log.Fatalf("%s: %v", t.table, err)
		}
		f.Close()
		at, task := column(rows[0], "arrival_s"), column(rows[0], "task")
		var b bytes.Buffer
		fmt.Fprintf(&b, "# Written by convert.go; do not edit. The format is in doc.go.\nschema: carma/trace/v1\n")
		fmt.Fprintf(&b, "name: %s\ndescription: %s\nsource: %q\ncampaign: %s\ntasks:\n", t.name, t.description, t.source, t.campaign)
		for _, row := range rows[1:] {
			p, err := workloads.Find(row[task])
			if err != nil {
				log.Fatal(err)
			}
			if _, err := p.Campaign(t.campaign); err != nil {
				log.Fatal(err)
			}
			fmt.Fprintf(&b, "  - {at: %s, workload: %s, name: %s}\n", row[at], p.Name, row[task])
		}
		if err := os.WriteFile(t.name+".yaml", b.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func column(header []string, name string) int {
	for i, c := range header {
		if c == name {
			return i
		}
	}
	log.Fatalf("no column %s", name)
	return 0
}
