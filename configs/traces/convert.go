//go:build ignore

// Convert writes the traces in this folder from tables that were made from the original's
// submission scripts:
//
//	go run convert.go FOLDER    (in configs/traces)
//
// FOLDER has one CSV file per trace, with the columns arrival_s (seconds since the first
// line of the script) and task (the original's task name). It also has
// arrivals-philly-200.csv, whose column gap_s goes to gaps/. The output is deterministic.
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
		rows := read(filepath.Join(os.Args[1], t.table))
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
	gaps(filepath.Join(os.Args[1], "arrivals-philly-200.csv"))
}

// gaps writes the arrival gaps that generated traces draw from, ten on a line.
func gaps(table string) {
	rows := read(table)
	gap := column(rows[0], "gap_s")
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by convert.go; do not edit. Seconds from one submission to the next; the first is from the start.\n")
	fmt.Fprintf(&b, "schema: carma/gaps/v1\nname: philly-200\ndescription: arrival gaps of 200 tasks, from Microsoft's Philly trace\n")
	fmt.Fprintf(&b, "source: \"list of 200 arrivals in GitHub ehsanyousefzadehasl/Philly-Trace-Analyser-and-Task-Mapper\"\ngaps_s: [")
	for i, row := range rows[1:] {
		if i > 0 {
			b.WriteString(",")
		}
		if i%10 == 0 {
			b.WriteString("\n ")
		}
		b.WriteString(" " + row[gap])
	}
	b.WriteString(",\n]\n")
	if err := os.WriteFile("gaps/philly-200.yaml", b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

func read(table string) [][]string {
	f, err := os.Open(table)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		log.Fatalf("%s: %v", table, err)
	}
	return rows
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
