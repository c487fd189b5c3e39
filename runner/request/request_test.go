package request

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"carma/containers"
	"carma/runner/rights"
)

// TestErrorf checks that the text of a refusal is cut in its middle, at whole characters.
func TestErrorf(t *testing.T) {
	if e := Errorf(404, "no task %d", 7); e.Status != 404 || e.Error() != "no task 7" {
		t.Errorf("%d, %q", e.Status, e)
	}
	e := Errorf(400, "begin %s end", strings.Repeat("ä", MaxText))
	if len(e.Text) > MaxText+len(" [...] ") || !strings.HasPrefix(e.Text, "begin ") || !strings.HasSuffix(e.Text, " end") || !utf8.ValidString(e.Text) {
		t.Errorf("%d bytes: %q", len(e.Text), e.Text)
	}
}

// TestCallerFrom checks that a caller comes back from the context of a request, and is
// looked up only when asked for.
func TestCallerFrom(t *testing.T) {
	if who, ok := CallerFrom(t.Context()); ok {
		t.Errorf("a request of nobody is by %+v", who)
	}
	if who, ok := CallerFrom(WithCaller(t.Context(), Caller{UID: 7})); !ok || who.UID != 7 {
		t.Errorf("%+v, %v", who, ok)
	}
	asked := 0
	ctx := WithLazyCaller(t.Context(), func() Caller { asked++; return Caller{UID: 8} })
	if asked != 0 {
		t.Error("looked up before anybody asks")
	}
	if who, ok := CallerFrom(context.WithoutCancel(ctx)); !ok || who.UID != 8 || asked != 1 {
		t.Errorf("%+v, %v, looked up %d times", who, ok, asked)
	}
}

// TestLookupCaller checks root, and a number without an entry.
func TestLookupCaller(t *testing.T) {
	if c := LookupCaller(0, 0); c.Name != "root" || c.Group == "" || len(c.GIDs) == 0 {
		t.Errorf("root is %+v", c)
	}
	if c := LookupCaller(4000123, 4000124); c.Name != "4000123" || c.GID != 4000124 || c.Home != "" || len(c.Groups) > 0 {
		t.Errorf("a user without an entry is %+v", c)
	}
}

// TestIs checks by which users of a container a caller is meant.
func TestIs(t *testing.T) {
	c := Caller{UID: 1000, GID: 100, Name: "ann", Group: "users"}
	for user, want := range map[string]bool{
		"1000": true, "ann": true, "1000:100": true, "ann:users": true, "1000:users": true,
		"0": false, "root": false, "ann:0": false, "ann:": false, "": false, ":100": false, "1000:0": false, "1000:100:x": false, "1000:100:0": false,
	} {
		if c.Is(user) != want {
			t.Errorf("%q: %v", user, !want)
		}
	}
}

// TestSubjectCaller checks the number and the namespace of a user of a cluster.
func TestSubjectCaller(t *testing.T) {
	ann := SubjectCaller(containers.Subject{Name: "ann", Groups: []string{"lab"}}, "")
	if ann.UID < rights.FirstClusterUser || ann.UID != SubjectUID("ann") || ann.UID == SubjectUID("bob") || ann.Namespace != "" || ann.Groups[0] != "lab" {
		t.Errorf("%+v", ann)
	}
	account := containers.Subject{Name: "system:serviceaccount:team:builder"}
	if c := SubjectCaller(account, ""); c.Namespace != "team" {
		t.Errorf("a service account is in %q", c.Namespace)
	}
	if c := SubjectCaller(account, "other"); c.Namespace != "other" {
		t.Errorf("with a namespace named, it is in %q", c.Namespace)
	}
}
