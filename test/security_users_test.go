//go:build e2e

package test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync/atomic"
)

// people counts the users that tests have requested.
var people atomic.Int64

// full reports whether to attack at full length, as in make test-security.
func full() bool { return os.Getenv("TEST_SECURITY") == "full" }

// people returns the ids of two users, who are in groups with the same ids. In make
// test-security the users are real, with names; the first one's home is the attacker's,
// and they are removed at the end. Elsewhere, or if users cannot be made, no passwd file
// has them.
func (a *attacker) people() (ann, bob uint32) {
	a.t.Helper()
	n := uint32(12346 + 2*people.Add(1))
	if full() {
		for i, home := range []string{a.home, "/nonexistent"} {
			if err := a.addUser(n+uint32(i), home); err != nil {
				a.t.Logf("users without names: %v", err)
				break
			}
		}
	}
	return n, n + 1
}

func (a *attacker) addUser(id uint32, home string) error {
	number := strconv.Itoa(int(id))
	if _, err := user.LookupId(number); err == nil {
		return fmt.Errorf("there is a user %s", number)
	}
	name := fmt.Sprintf("carmatest%s", number)
	if out, err := exec.Command("groupadd", "--system", "--gid", number, name).CombinedOutput(); err != nil {
		return fmt.Errorf("groupadd: %w: %s", err, out)
	}
	if out, err := exec.Command("useradd", "--system", "--uid", number, "--gid", number, "--no-create-home", "--home-dir", home, name).CombinedOutput(); err != nil {
		return fmt.Errorf("useradd: %w: %s", err, out)
	}
	a.t.Cleanup(func() {
		if out, err := exec.Command("userdel", "--force", name).CombinedOutput(); err != nil {
			a.t.Errorf("userdel %s: %v: %s", name, err, out)
		}
	})
	made, err := user.Lookup(name)
	if err != nil || made.Gid != number {
		return fmt.Errorf("user %s has the group %v, not %s: %v", name, made, number, err)
	}
	a.t.Logf("user %s (%s) was made for this test", name, number)
	return nil
}
