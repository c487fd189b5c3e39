package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"

	"carma/mapper/sim"
)

// workload is one task of a pair.
type workload struct {
	id, family string
	load       sim.Load
}

// pair is two tasks measured together.
type pair struct {
	a, b           workload
	speedA, speedB float64 // while both ran
}

func table(path string) ([]map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: empty", path)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func read(pairsPath, profilesPath string) ([]pair, error) {
	profiles, err := table(profilesPath)
	if err != nil {
		return nil, err
	}
	byID := map[string]workload{}
	for _, row := range profiles {
		id := row["workload_id"]
		if _, ok := byID[id]; ok || row["smact_mean"] == "" {
			continue // the first row is the first GPU
		}
		w := workload{id: id, family: row["model"] + " " + row["dataset"], load: sim.Load{Step: step(row)}}
		for column, value := range map[string]*float64{
			"smact_mean": &w.load.SMACT, "smocc_mean": &w.load.SMOCC, "drama_mean": &w.load.DRAMA,
		} {
			if *value, err = strconv.ParseFloat(row[column], 64); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", profilesPath, id, err)
			}
		}
		byID[id] = w
	}
	rows, err := table(pairsPath)
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for i, row := range rows {
		p := pair{a: byID[row["solo_profile_a"]], b: byID[row["solo_profile_b"]]}
		if p.a.id == "" || p.b.id == "" {
			return nil, fmt.Errorf("%s:%d: no solo profile for %s or %s", pairsPath, i+2, row["job_a"], row["job_b"])
		}
		if p.speedA, err = strconv.ParseFloat(row["overlap_speed_a"], 64); err == nil {
			p.speedB, err = strconv.ParseFloat(row["overlap_speed_b"], 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", pairsPath, i+2, err)
		}
		pairs = append(pairs, p)
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("%s: no pairs", pairsPath)
	}
	return pairs, nil
}

// samples of a data set's training part, as in package workloads (a test
// compares the two; importing it would turn round the direction of imports).
var samples = map[string]float64{
	"imagenet": 1_281_167, "cifar100": 50_000, "mnist": 60_000, "coco": 117_266,
	"pascal_voc": 1_464, "wikitext2": 18_700, "criteo_terabyte": 64_000_000,
}

// step is the time of one training step in seconds; 0 when the profile does
// not tell.
func step(row map[string]string) float64 {
	number := func(column string, otherwise float64) float64 {
		if v, err := strconv.ParseFloat(row[column], 64); err == nil {
			return v
		}
		return otherwise
	}
	batch, epochs := number("batch_size", 0), number("epochs", 1)
	if row["model"] == "unet" { // its profile does not say
		batch, epochs = 8, 90
	}
	steps := epochs * samples[row["dataset"]] / batch
	if loop := number("train_loop_s", number("end_to_end_s", 0)); loop > 0 && steps > 0 && batch > 0 {
		return loop / steps
	}
	return 0
}

func withoutSteps(pairs []pair) []pair {
	var out []pair
	for _, p := range pairs {
		p.a.load.Step, p.b.load.Step = 0, 0
		out = append(out, p)
	}
	return out
}
