package rights

import (
	"fmt"
	"strings"
)

// Markdown returns the tables of the documentation.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| action on a task or a suite | its owner | other users | administrators | administrators, if it is root's or the daemon's account's | root |\n|---|---|---|---|---|---|\n")
	for _, table := range [][]taskRule{taskRules, suiteRules} {
		for i := range table {
			rule := &table[i]
			fmt.Fprintf(&b, "| %s | yes | %s | %s | %s | yes |\n", rule.text, cell(rule.others), cell(wider(rule, ordinary)), cell(wider(rule, always)))
		}
	}
	b.WriteString("\n| action on the server | users of the machine | users of the cluster | administrators | administrators of the cluster | the daemon's account | root |\n|---|---|---|---|---|---|---|\n")
	for i := range serverRules {
		rule := &serverRules[i]
		fmt.Fprintf(&b, "| %s |", rule.text)
		for _, role := range Roles() {
			fmt.Fprintf(&b, " %s |", yes(rule.roles&role != 0))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// wider returns always if administrators have at least the reach least, and else the
// reach of other users. least is ordinary for tasks of ordinary users, always for
// protected tasks.
func wider(rule *taskRule, least reach) reach {
	if rule.admins >= least {
		return always
	}
	return rule.others
}

func cell(r reach) string {
	if r == ifOpen {
		return "if it is open"
	}
	return yes(r == always)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
