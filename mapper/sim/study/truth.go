package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/configs/workloads"
	"carma/internal/suggest"
	"carma/mapper/sim"
	"carma/mapper/sim/pairs"
)

// truthWords maps named truths to their keys.
var truthWords = map[string]string{
	"model": "",
	// The model's error on pairs to which it was not fitted, the spread of run times of one
	// command in public job logs, and profiles of another server.
	"perturbed": "pair=0.12,time=0.54,activity=0.2",
}

// TruthWords lists the named truths, the default first.
var TruthWords = []string{"model", "perturbed"}

// TruthKeys lists the keys of a truth.
var TruthKeys = append(sim.TruthKeys(), "seed", "pairs")

// ParseTruth parses KEY=VALUE or a word of [TruthWords], several separated by commas. Key
// pairs names a CSV file of measured pairs.
func ParseTruth(text string) (sim.Truth, error) {
	var t sim.Truth
	var seen []string
	parts := splitList(text)
	for i := 0; i < len(parts); i++ {
		key, value, ok := strings.Cut(parts[i], "=")
		if keys, word := truthWords[key]; word && !ok {
			if keys != "" {
				parts = slices.Insert(parts, i+1, splitList(keys)...)
			}
			continue
		}
		switch {
		case !ok && key == "":
			return t, fmt.Errorf("a part is empty; write for example pair=0.12,seed=2, or perturbed")
		case !ok && slices.Contains(TruthKeys, key):
			return t, fmt.Errorf("%s has no value; write for example %s", key, truthExample(key))
		case !ok:
			return t, fmt.Errorf("unknown word %q; nearest: %s", key, suggest.Names(key, slices.Concat(TruthWords, TruthKeys), 1)[0])
		case slices.Contains(TruthWords, key):
			return t, fmt.Errorf("%s takes no value; write %s", key, key)
		case !slices.Contains(TruthKeys, key):
			return t, fmt.Errorf("unknown key %q; nearest: %s", key, suggest.Names(key, TruthKeys, 1)[0])
		case slices.Contains(seen, key):
			return t, fmt.Errorf("%s is set twice", key)
		}
		seen = append(seen, key)
		if err := setTruth(&t, key, value); err != nil {
			return t, err
		}
	}
	return t, nil
}

func truthExample(key string) string {
	switch key {
	case "seed":
		return "seed=2"
	case "pairs":
		return "pairs=measured.csv"
	case "pair", "time", "activity":
		return key + "=0.2"
	}
	return key + "=0.3"
}

func setTruth(t *sim.Truth, key, value string) error {
	switch key {
	case "seed":
		seed, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return fmt.Errorf("seed: %q is not a whole number from 0 on; write for example seed=2", value)
		}
		t.Seed = seed
		return nil
	case "pairs":
		var err error
		t.Speeds, err = readSpeeds(value)
		t.SpeedsFrom = value
		return err
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("%s: %q is not a number; write for example %s", key, value, truthExample(key))
	}
	return t.Set(key, f)
}

// readSpeeds reads the speeds of measured pairs by the names of workloads. The file has
// the format of carma replay --pairs; a task is named by its solo profile or by its
// workload. For pairs measured several times it returns the mean.
func readSpeeds(path string) (map[[2]string]float64, error) {
	if path == "" {
		return nil, fmt.Errorf("pairs has no value; write for example %s", truthExample("pairs"))
	}
	file, err := pairs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pairs: %w", err)
	}
	defer file.Close()
	profiles, names := pairNames()
	measured, err := pairs.Read(path, file, profiles)
	if err != nil {
		return nil, fmt.Errorf("pairs: %w", err)
	}
	sums, counts := map[[2]string]float64{}, map[[2]string]float64{}
	for _, p := range measured.Pairs {
		if p.SpeedA <= 0 || p.SpeedB <= 0 {
			continue // the pair did not fit into memory
		}
		for _, a := range names[p.A.ID] {
			for _, b := range names[p.B.ID] {
				sums[[2]string{a, b}] += p.SpeedA
				sums[[2]string{b, a}] += p.SpeedB
				counts[[2]string{a, b}]++
				counts[[2]string{b, a}]++
			}
		}
	}
	if len(sums) == 0 {
		why := "no pair has speeds"
		if len(measured.Skipped) > 0 {
			why = fmt.Sprintf("line %d: %s", measured.Skipped[0].Line, measured.Skipped[0].Reason)
		}
		return nil, fmt.Errorf("pairs: %s: none of its pairs can be used; %s", path, why)
	}
	for key := range sums {
		sums[key] /= counts[key]
	}
	return sums, nil
}

// pairNames returns the tasks that a file of pairs may name, and the workloads that each
// name stands for. It needs no activity.
func pairNames() (map[string]pairs.Profile, map[string][]string) {
	profiles, names := map[string]pairs.Profile{}, map[string][]string{}
	for _, w := range workloads.All() {
		for _, id := range []string{w.Solo.ID, w.Name} {
			if id == "" || slices.Contains(names[id], w.Name) {
				continue
			}
			profiles[id] = pairs.Profile{Task: pairs.Task{ID: id}, Measured: true, GPUs: w.GPUs}
			names[id] = append(names[id], w.Name)
		}
	}
	return profiles, names
}
