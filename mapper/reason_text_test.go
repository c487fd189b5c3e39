package mapper

import (
	"fmt"
	"strings"

	"carma/mapper/explain"
	"carma/mapper/model"
)

// say formats a reason's code and figures in one line, for tests; mapper/words tests the
// sentences.
func say(r model.Reason) string {
	parts := []string{string(r.Code)}
	add := func(set bool, format string, args ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.Task != 0, "task=%d", r.Task)
	add(r.Name != "", "name=%s", r.Name)
	add(r.Condition != "", "condition=%s", r.Condition)
	add(r.Have != 0, "have=%s", r.Have)
	add(r.Need != 0, "need=%s", r.Need)
	add(r.Of != 0, "of=%s", r.Of)
	add(r.GPU != 0, "gpu=%d", r.GPU)
	add(r.Count != 0, "count=%d", r.Count)
	add(r.More != 0, "more=%d", r.More)
	add(r.Limit != 0, "limit=%d", r.Limit)
	add(r.Span != 0, "span=%s", r.Span)
	add(r.Most != 0, "most=%s", r.Most)
	add(r.Text != "", "%q", r.Text)
	add(r.Cause != nil, "<-")
	if r.Cause != nil {
		add(true, "%s", say(*r.Cause))
	}
	return strings.Join(parts, " ")
}

// sayWhy formats in one line why a task waits.
func sayWhy(w explain.Why) string {
	text := say(w.Binding)
	if w.Nearest != nil {
		text = fmt.Sprintf("%d of %d: %s", w.Binding.Count, w.Binding.Limit, sayNot(*w.Nearest))
	}
	if t := w.Turn; t != nil {
		text += fmt.Sprintf("; %d of others first, %s %.0f, %s %.0f", t.Later, t.User, t.Use, t.Own, t.OwnUse)
	}
	return text
}

// sayNot formats in one line why a GPU was rejected.
func sayNot(r model.Rejection) string {
	text := fmt.Sprintf("GPU %d %s", r.Index, r.Rule)
	switch r.Rule {
	case model.RuleMemory, model.RuleMinFree, model.RuleForeign:
		text += fmt.Sprintf(" have=%s need=%s of=%s", r.Have, r.Need, r.Of)
	case model.RuleIdle, model.RuleMaxTasks, model.RuleWait:
		text += fmt.Sprintf(" tasks=%d", r.Tasks)
	case model.RuleAlone, model.RuleKept, model.RuleWarmUp, model.RuleUnseen:
		text += fmt.Sprintf(" task=%d", r.Task)
	case model.RuleSMACT:
		text += fmt.Sprintf(" %.2f cap=%.2f", r.SMACT, r.Cap)
	case model.RuleSlowdown:
		text += fmt.Sprintf(" task=%d %.2f cap=%.2f", r.Task, r.Slowdown, r.Cap)
	}
	return text
}
