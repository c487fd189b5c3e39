package rights

import "fmt"

// rules are the rows of the table for actions on tasks and suites, roles the rows for
// actions on the server.
var (
	rules = index()
	roles = indexServer()
)

func index() map[Action]*taskRule {
	all := map[Action]*taskRule{}
	for _, table := range [][]taskRule{taskRules, suiteRules} {
		for i := range table {
			all[table[i].action] = &table[i]
		}
	}
	return all
}

func indexServer() map[Action]*serverRule {
	all := map[Action]*serverRule{}
	for i := range serverRules {
		all[serverRules[i].action] = &serverRules[i]
	}
	return all
}

// OnServer reports whether an action is about the server and not about a task or a suite.
func (a Action) OnServer() bool { return roles[a] != nil }

// Known reports whether the table has a row for an action.
func (a Action) Known() bool { return roles[a] != nil || rules[a] != nil }

// Reads reports whether an action on a task or a suite changes nothing.
func (a Action) Reads() bool { return rules[a] != nil && rules[a].read }

// Protected reports whether the tasks of an owner are protected from administrators, as
// the tasks of root and of the daemon's account are.
func (p Policy) Protected(o Owner) bool { return p.Trusted(o.UID) }

// May reports whether a caller may do something to a task or a suite of an owner. An
// action that the table does not have is refused to everybody.
func (p Policy) May(a Action, c Caller, o Owner) bool {
	rule, role := rules[a], p.Role(c)
	switch {
	case rule == nil:
		return false
	case Owns(c, o) || role == Root:
		return true
	case p.reaches(rule.others, o):
		return true
	}
	return role&administrators != 0 && p.reaches(rule.admins, o)
}

func (p Policy) reaches(r reach, o Owner) bool {
	switch r {
	case always:
		return true
	case ifOpen:
		return o.Open
	case ordinary:
		return !p.Protected(o)
	}
	return false
}

// MayServer reports whether a caller may do something to the server.
func (p Policy) MayServer(a Action, c Caller) bool {
	rule := roles[a]
	return rule != nil && c.UID >= 0 && rule.roles&p.Role(c) != 0
}

// Administrative reports whether a caller's action belongs in the audit log, allowed or
// not. These are an administrator's actions on another user's property, and actions on
// the server that ordinary users may not do. Reading public information is not such an
// action.
func (p Policy) Administrative(a Action, c Caller, o Owner) bool {
	if !p.Administers(c) {
		return false
	}
	if rule := roles[a]; rule != nil {
		return rule.roles&(User|ClusterUser) == 0
	}
	rule := rules[a]
	return rule != nil && !Owns(c, o) && !p.reaches(rule.others, o)
}

// Refusal returns the line for a caller who may not do something to a task or a suite.
// what is its name, such as "task 7".
func (p Policy) Refusal(a Action, c Caller, o Owner, what string) string {
	rule := rules[a]
	switch {
	case rule == nil:
		return fmt.Sprintf("nobody may do %q", string(a))
	case p.Administers(c) && p.Protected(o):
		return fmt.Sprintf("%s %s of %s: only %s may; you are %s", rule.verb, what, o.Name, p.protectors(o), c.Name)
	case rule.others == ifOpen:
		return fmt.Sprintf("%s is %s's and private: its output is for %s and administrators; %s can submit tasks with --visibility open", what, o.Name, o.Name, o.Name)
	}
	return fmt.Sprintf("%s belongs to %s; you are %s", what, o.Name, c.Name)
}

// protectors names the users who may do everything to a protected task.
func (p Policy) protectors(o Owner) string {
	if o.UID == 0 {
		return "root"
	}
	return o.Name + " and root"
}

// ServerRefusal returns the line for a caller who may not do something to the server.
// group is the setting admin-group, or empty if there is none.
func (p Policy) ServerRefusal(a Action, c Caller, group string) string {
	rule := roles[a]
	switch {
	case rule == nil:
		return fmt.Sprintf("nobody may do %q", string(a))
	case OfCluster(c.UID):
		return fmt.Sprintf("%s is for the administrators of carma (kubernetes-admins); you are %s", rule.name, c.Name)
	case rule.roles&Admin == 0 || group == "":
		return fmt.Sprintf("%s is for root; you are %s", rule.name, c.Name)
	}
	return fmt.Sprintf("%s is for root and group %s; you are %s", rule.name, group, c.Name)
}
