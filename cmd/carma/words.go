package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/mapper/units"

	"carma/mapper"
	"carma/runner/api"
)

// ordinal is 1st, 2nd, 3rd, 4th.
func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// age is a time in two units at most: 42s, 12m, 3h04m, 5d02h.
func age(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 0:
		return "0s"
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
}

// gib is an amount of memory in GiB without the unit, for columns.
func gib(bytes int64) string { return fmt.Sprintf("%.1f", units.Bytes(bytes).GiB()) }

// indexes is the display form of a set of GPUs: 0,2.
func indexes(gpus []api.GPURef) string {
	gpus = slices.SortedFunc(slices.Values(gpus), func(a, b api.GPURef) int { return a.Index - b.Index })
	parts := make([]string, len(gpus))
	for i, g := range gpus {
		parts[i] = strconv.Itoa(g.Index)
	}
	return strings.Join(parts, ",")
}

// onGPUs is "GPU 0" or "GPUs 0,2".
func onGPUs(gpus []api.GPURef) string {
	if len(gpus) == 1 {
		return "GPU " + indexes(gpus)
	}
	return "GPUs " + indexes(gpus)
}

// placed reports whether a task holds GPUs.
func placed(t *api.Task) bool {
	return t.Phase == string(mapper.Launching) || t.Phase == string(mapper.Running) || t.Phase == string(mapper.Stopping)
}

// last returns the latest attempt, or nil.
func last(t *api.Task) *api.Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// ending says how a task ended, without its name: "failed: exit code 1".
func ending(t *api.Task) string {
	why := t.Reason
	if why == "" && t.ExitCode != nil && *t.ExitCode != 0 {
		why = fmt.Sprintf("exit code %d", *t.ExitCode)
	}
	if why == "" {
		return t.Phase
	}
	return t.Phase + ": " + why
}

// taskCode is the exit code of a command that stands for a finished task.
func taskCode(t *api.Task) int {
	switch {
	case t.Phase == string(mapper.Succeeded):
		return exitOK
	case t.ExitCode != nil && *t.ExitCode > 0 && *t.ExitCode < 256:
		return *t.ExitCode
	case t.ExitCode == nil && t.Phase == string(mapper.Failed):
		return exitCarma // it never ran
	}
	return exitFailed
}
