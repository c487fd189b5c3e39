package main

// section is a part of the menu.
type section struct {
	title string
	pages []string // below the root, without .md
}

// menu is the order in which the pages are read. Every page of docs/ is in it.
var menu = []section{
	{"Start", []string{"README", "docs/tour", "docs/coming-from", "docs/faq"}},
	{"For users", []string{"docs/tasks", "docs/progress", "docs/suites", "docs/estimators", "docs/monitoring"}},
	{"For administrators", []string{"docs/install", "docs/containers", "docs/kubernetes", "docs/reliability", "docs/endings", "docs/security"}},
	{"Scheduling", []string{"docs/results", "docs/replay"}},
	{"Real GPUs", []string{"docs/hardware/README", "docs/hardware/h100-2026-11-26", "docs/hardware/h100-2026-11-26/kubernetes", "docs/hardware/h100-2026-11-22"}},
	{"How it is made", []string{"docs/design", "docs/decisions", apiPage, "CHANGELOG", "CONTRIBUTING", "SECURITY"}},
}

// apiPage is made from the API's own description.
const apiPage = "docs/api"
