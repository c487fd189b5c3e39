package report

import (
	"fmt"
	"slices"
	"strings"

	"carma/mapper/policy"
)

// policyColours is the number of colours before they repeat.
const policyColours = 12

// The colours of policies (p), kinds of tasks (k) and attempts that were stopped.
const (
	lightColours = "--stop: #9a9992; --rest: #d8d7d2; --bar: #22221f; " +
		"--p0: #2a78d6; --p1: #e0631f; --p2: #159a6c; --p3: #b98300; --p4: #cf5a8a; --p5: #3f7d20; --p6: #4a3aa7; --p7: #75746e; --p8: #0f8fa8; --p9: #8a4b22; --p10: #a8163c; --p11: #9a6fd0; " +
		"--k0: #a9c9ee; --k1: #f6c58f; --k2: #a8d8a0; --k3: #e3b6d0; --k4: #9fd3cd; --k5: #d9cf86; --k6: #c3b5e6; --k7: #d8b79c; --k8: #9cbccf;"
	darkColours = "--stop: #6d6c66; --rest: #84837d; --bar: #141413; " +
		"--p0: #5a9bea; --p1: #e8834c; --p2: #3fb98a; --p3: #d3a02a; --p4: #e27fa6; --p5: #79b356; --p6: #9d90ea; --p7: #9c9b94; --p8: #4fc3d9; --p9: #c28a60; --p10: #f06080; --p11: #c7a8f0; " +
		"--k0: #87aedb; --k1: #dfa766; --k2: #83bd7a; --k3: #c793b1; --k4: #76b5ae; --k5: #bcb15f; --k6: #a393cf; --k7: #b8957a; --k8: #7c9fb3;"
	// The page's own colours that pictures need.
	lightPaper = "--page: #ffffff; --ink: #1a1f27; --muted: #545d6b; --faint: #d9dde3; --limit: #b3261e; "
	darkPaper  = "--page: #1b2027; --ink: #e7eaf0; --muted: #a3adbb; --faint: #343c47; --limit: #ff8e86; "
)

// colourSheet returns the style sheet of a page with a selectable theme, with a class for
// each colour.
func colourSheet() string {
	var b strings.Builder
	fmt.Fprintf(&b, ":root { %s }\n@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { %s } }\n:root[data-theme=dark] { %s }\n", lightColours, darkColours, darkColours)
	return b.String() + colourClasses()
}

// colourClasses returns a rule for each colour.
func colourClasses() string {
	var b strings.Builder
	for i := range policyColours {
		fmt.Fprintf(&b, ".p%d { color: var(--p%d); } ", i, i)
	}
	for i := range shownKinds {
		fmt.Fprintf(&b, ".k%d { color: var(--k%d); } ", i, i)
	}
	return b.String() + ".rest { color: var(--rest); }\n"
}

// palette returns for each run the class of its policy's colour, the same in all reports
// as far as the colours suffice.
func palette(runs []Run) []string {
	own, ordered := make([]string, len(runs)), make([]string, len(runs))
	taken := map[string]bool{} // only for look-up
	for i := range runs {
		ordered[i] = fmt.Sprintf("p%d", i%policyColours)
		own[i] = fmt.Sprintf("p%d", max(0, slices.Index(policy.Names(), runs[i].Policy))%policyColours)
		taken[own[i]] = true
	}
	if len(taken) < len(runs) {
		return ordered
	}
	return own
}
