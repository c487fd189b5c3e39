package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/internal/units"
	"carma/mapper/model"
)

// quotas parses a list of limits, each for a user or @ACCOUNT, in any order: "ada:gpus=4
// mem=80G".
func quotas(raw any) ([]model.Quota, error) {
	var words []string
	if m, ok := raw.(map[string]any); ok { // {ada: gpus=4} has the same meaning
		for name, v := range m {
			words = append(words, name+":"+text(v))
		}
	} else {
		var err error
		if words, err = list(raw); err != nil {
			return nil, fmt.Errorf("%s is not a list of limits; write for example [ada:gpus=4, @students:tasks=20]", quote(raw))
		}
	}
	var all []model.Quota
	for _, word := range words {
		q, err := quota(word)
		if err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	slices.SortStableFunc(all, func(a, b model.Quota) int {
		return cmp.Or(strings.Compare(mark(a), mark(b)), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// mark returns the prefix that sorts users before accounts.
func mark(q model.Quota) string {
	if q.Account {
		return "@"
	}
	return ""
}

func quota(word string) (q model.Quota, err error) {
	name, limits, ok := strings.Cut(word, ":")
	q.Name, q.Account = strings.CutPrefix(strings.TrimSpace(name), "@")
	if !ok || q.Name == "" || strings.TrimSpace(limits) == "" {
		return q, fmt.Errorf("%q is no limit of a user or group; write for example ada:gpus=4 or @students:tasks=20", word)
	}
	for _, limit := range strings.Fields(limits) {
		key, value, _ := strings.Cut(limit, "=")
		switch key {
		case "tasks":
			q.Tasks, err = atMost(value)
		case "gpus":
			q.GPUs, err = atMost(value)
		case "mem":
			if value == "none" {
				q.Memory = model.NoQuota
			} else if q.Memory, err = units.ParseAmount(value); err == nil && q.Memory <= 0 {
				err = fmt.Errorf("%q leaves nothing; write for example 80G, or none for no limit", value)
			}
		default:
			err = fmt.Errorf("unknown limit; there are tasks, gpus and mem")
		}
		if err != nil {
			return q, fmt.Errorf("%s: %s: %w", strings.TrimSpace(name), limit, err)
		}
	}
	return q, nil
}

func atMost(value string) (int, error) {
	if value == "none" {
		return model.NoQuota, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number above 0; write for example 4, or none for no limit", value)
	}
	return n, nil
}

func showQuotas(all []model.Quota) string {
	words := make([]string, len(all))
	for i, q := range all {
		words[i] = mark(q) + q.Name + ":" + strings.Join(limits(q), " ")
	}
	return strings.Join(words, ",")
}

func limits(q model.Quota) (all []string) {
	add := func(key string, n int64, shown string) {
		switch {
		case n < 0:
			all = append(all, key+"=none")
		case n > 0:
			all = append(all, key+"="+shown)
		}
	}
	add("tasks", int64(q.Tasks), strconv.Itoa(q.Tasks))
	add("gpus", int64(q.GPUs), strconv.Itoa(q.GPUs))
	add("mem", int64(q.Memory), showBytes(q.Memory))
	return all
}
