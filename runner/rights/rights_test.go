package rights

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The callers and owners of the tests. The daemon's account is 500.
var (
	policy  = Policy{Account: 500}
	callers = []Caller{
		{UID: 1001, Name: "ann"}, {UID: 1002, Name: "bob"}, {UID: FirstClusterUser + 1, Name: "cara"},
		{UID: 1003, Name: "oper", Named: true}, {UID: FirstClusterUser + 2, Name: "olga", Named: true},
		{UID: 500, Name: "carma"}, {UID: 0, Name: "root"}, Nobody(),
	}
	owners = []Owner{{UID: 1001, Name: "ann"}, {UID: FirstClusterUser + 1, Name: "cara"}, {UID: 0, Name: "root"}, {UID: 500, Name: "carma"}}
)

// columns names the callers of a string in matrix, in order of callers.
const columns = "ann bob cara oper olga carma root nobody"

// matrix lists for each action the allowed callers: a letter for each caller, for tasks of ann,
// cara, root and carma. It is written by hand, and repeats nothing of the table's code. O is
// yes, o is yes for an open task, - is no.
var matrix = map[Action][4]string{
	See:             {"OOOOOOOO", "OOOOOOOO", "OOOOOOOO", "OOOOOOOO"},
	Environment:     {"OooOOOOo", "ooOOOOOo", "ooooooOo", "oooooOOo"},
	ListEnvironment: {"OoooooOo", "ooOoooOo", "ooooooOo", "oooooOOo"},
	Output:          {"OooOOOOo", "ooOOOOOo", "ooooooOo", "oooooOOo"},
	Progress:        {"OooOOOOo", "ooOOOOOo", "ooooooOo", "oooooOOo"},
	Undelivered:     {"O--OOOO-", "--OOOOO-", "------O-", "-----OO-"},
	Attach:          {"O--OOOO-", "--OOOOO-", "------O-", "-----OO-"},
	Exec:            {"O--OOOO-", "--OOOOO-", "------O-", "-----OO-"},
	Remove:          {"O--OOOO-", "--OOOOO-", "------O-", "-----OO-"},
	Stop:            {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Hold:            {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Release:         {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Suspend:         {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Resume:          {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Requeue:         {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Move:            {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Pin:             {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	Update:          {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	SeeSuite:        {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	DropSuite:       {"O--OOOO-", "--OOOOO-", "---OOOO-", "---OOOO-"},
	DropVolumes:     {"O--OOOO-", "--OOOOO-", "------O-", "-----OO-"},
	HelperOutput:    {"O--OOOO-", "--OOOOO-", "------O-", "-----OO-"},
}

// serverMatrix says the same for actions on the server.
var serverMatrix = map[Action]string{
	Submit: "OOOOOOO-", SeeServer: "OOOOOOO-", Messages: "OOOOOOO-", OwnAudit: "OOOOOOO-",
	SeeUse: "OO-OOOO-", Page: "OO-OOOO-", Doctor: "OO-OOOO-",
	Drain: "---OOOO-", DrainGPUs: "---OOOO-", Pause: "---OOOO-", Reserve: "---OOOO-", Unreserve: "---OOOO-", Speed: "---OOOO-",
	Prove: "---OOOO-", Calibrate: "---OOOO-", AllScores: "---OOOO-", Channels: "---OOOO-", HighPriority: "---OOOO-", Unlimited: "---OOOO-",
	AnyAccount: "---OOOO-", AnyNamespace: "---OOOO-", HostTasks: "---OOOO-",
	MountAll: "-----OO-", AllAudit: "-----OO-", ChooseUser: "--O-O-O-",
}

// TestTable asks for every action, caller, owner and visibility, and compares the answers
// with matrix.
func TestTable(t *testing.T) {
	asked := 0
	check := func(got bool, a Action, c Caller, o Owner, letter byte) {
		t.Helper()
		asked++
		if want := letter == 'O' || letter == 'o' && o.Open; got != want {
			t.Errorf("%s, %s to %s's (open: %v): %v", a, c.Name, o.Name, o.Open, got)
		}
	}
	for a := range rules {
		want, is := matrix[a]
		if !is {
			t.Errorf("matrix has no row for %s", a)
			continue
		}
		for i, o := range owners {
			for j, c := range callers {
				for _, o.Open = range []bool{false, true} {
					check(policy.May(a, c, o), a, c, o, want[i][j])
				}
			}
		}
		for _, c := range callers {
			if policy.MayServer(a, c) {
				t.Errorf("%s is an action on the server for %s", a, c.Name)
			}
		}
	}
	for a := range roles {
		if len(serverMatrix[a]) != len(callers) {
			t.Errorf("serverMatrix has no row for %s", a)
			continue
		}
		for j, c := range callers {
			check(policy.MayServer(a, c), a, c, Owner{}, serverMatrix[a][j])
			if policy.May(a, c, owners[0]) {
				t.Errorf("%s is an action on a task for %s", a, c.Name)
			}
		}
	}
	if len(rules) != len(matrix) || len(roles) != len(serverMatrix) || len(strings.Fields(columns)) != len(callers) {
		t.Errorf("%d and %d rows in matrix, %d and %d in the table", len(matrix), len(serverMatrix), len(rules), len(roles))
	}
	t.Logf("%d combinations of action, caller, owner and visibility", asked)
}

// TestUnknownAction checks that no user may perform an action that is not in the table.
func TestUnknownAction(t *testing.T) {
	for _, c := range callers {
		for _, o := range owners {
			if policy.May("burn", c, o) || policy.MayServer("burn", c) || Action("burn").Known() {
				t.Errorf("%s may", c.Name)
			}
		}
	}
}

// TestDaemonOfRoot checks that a daemon of root's has no account beside root.
func TestDaemonOfRoot(t *testing.T) {
	p := Policy{Account: 0}
	if p.Role(Caller{UID: 0}) != Root || p.Role(Caller{UID: 500}) != User || p.May(Exec, Caller{UID: 500, Named: true}, Owner{UID: 0}) {
		t.Error("another account is taken for the daemon's")
	}
}

// TestNames checks that a user of the cluster is known by number and name, and a user of
// the machine by number.
func TestNames(t *testing.T) {
	cara := Caller{UID: FirstClusterUser + 1, Name: "cara"}
	if !Owns(cara, owners[1]) || Owns(Caller{UID: cara.UID, Name: "mallory"}, owners[1]) || !Owns(Caller{UID: 1001, Name: "renamed"}, owners[0]) || Owns(Nobody(), Owner{UID: -2}) {
		t.Error("wrong owner")
	}
}

// TestRefusals checks the lines that callers read.
func TestRefusals(t *testing.T) {
	ann, root, carma := owners[0], owners[2], owners[3]
	oper, bob := callers[3], callers[1]
	for _, row := range []struct{ got, want string }{
		{policy.Refusal(Exec, oper, root, "task 7"), "exec in task 7 of root: only root may; you are oper"},
		{policy.Refusal(Output, oper, carma, "task 7"), "read the output of task 7 of carma: only carma and root may; you are oper"},
		{policy.Refusal(Attach, callers[5], root, "task 7"), "attach to task 7 of root: only root may; you are carma"},
		{policy.Refusal(Exec, bob, root, "task 7"), "task 7 belongs to root; you are bob"},
		{policy.Refusal(Stop, bob, ann, "task 7"), "task 7 belongs to ann; you are bob"},
		{policy.Refusal(Output, bob, ann, "task 7"), "task 7 is ann's and private: its output is for ann and administrators; ann can submit tasks with --visibility open"},
		{policy.ServerRefusal(Drain, bob, "carma"), "draining the daemon is for root and group carma; you are bob"},
		{policy.ServerRefusal(Drain, bob, ""), "draining the daemon is for root; you are bob"},
		{policy.ServerRefusal(ChooseUser, oper, "carma"), "choosing the user of a task is for root; you are oper"},
		{policy.ServerRefusal(Drain, callers[2], "carma"), "draining the daemon is for the administrators of carma (kubernetes-admins); you are cara"},
	} {
		if row.got != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
}

// TestAdministrative checks which actions are recorded: actions of an administrator on
// others and on the server, allowed or not. Actions that everybody may do are not recorded,
// nor actions on one's own tasks, nor refused actions of ordinary users.
func TestAdministrative(t *testing.T) {
	for _, a := range []Action{Environment, Output, Exec, Stop, Remove, DropSuite} {
		for _, c := range callers {
			for _, o := range owners {
				want := (c.Named || c.UID == 0 || c.UID == 500) && c.UID != o.UID
				if got := policy.Administrative(a, c, o); got != want {
					t.Errorf("%s, %s to %s's: %v", a, c.Name, o.Name, got)
				}
				if o.Open = true; a == Output && policy.Administrative(a, c, o) {
					t.Errorf("%s reads an open task", c.Name)
				}
			}
		}
	}
	for _, c := range callers {
		admin := c.Named || c.UID == 0 || c.UID == 500
		if policy.Administrative(See, c, owners[0]) || policy.Administrative(SeeServer, c, Owner{}) || policy.Administrative(Drain, c, Owner{}) != admin {
			t.Errorf("%s", c.Name)
		}
	}
}

// TestDocumentation compares the tables of docs/security.md with this one. UPDATE_RIGHTS=1
// writes them.
func TestDocumentation(t *testing.T) {
	const path, begin, end = "../../docs/security.md", "<!-- rights: begin -->\n", "<!-- rights: end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	have, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no marks %q and %q", path, begin, end)
	}
	want := fmt.Sprintf("\n%s\n", Markdown())
	if have == want {
		return
	}
	if os.Getenv("UPDATE_RIGHTS") == "" {
		t.Fatal("the tables of docs/security.md differ from the table of rights: UPDATE_RIGHTS=1 go test ./runner/rights")
	}
	if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
