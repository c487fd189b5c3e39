package notify

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ranAs runs a hook that prints its user, group, other groups, and capabilities.
func ranAs(t *testing.T, as string) (lines []string, err error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{out, filepath.Dir(out), filepath.Dir(filepath.Dir(out))} {
		if err := os.Chmod(at, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	o := newOffice(t).open()
	h := &hook{path: script(t, "{ id -u; id -g; id -G; grep ^CapEff /proc/self/status; } > "+out+"\n"), as: as, log: o.opt.Log}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = h.deliver(ctx, write("gpu1", []Message{{ID: "x"}}, true, 0))
	raw, _ := os.ReadFile(out)
	return strings.Split(strings.TrimSpace(string(raw)), "\n"), err
}

// TestHookUser checks that root's daemon runs a hook as user nobody or as the configured user,
// with only that user's group and without capabilities. If the user does not exist, the hook
// does not run.
func TestHookUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("left out: it needs root, to become another user")
	}
	old, err := syscall.Getgroups()
	if err == nil {
		err = syscall.Setgroups([]int{0, 4}) // as a daemon of systemd's may have
	}
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Setgroups(old)
	for as, name := range map[string]string{"": "nobody", "daemon": "daemon"} {
		u, err := user.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ranAs(t, as)
		if err != nil || len(got) < 4 || got[0] != u.Uid || got[1] != u.Gid || got[2] != u.Gid || !strings.HasSuffix(got[3], "0000000000000000") {
			t.Errorf("as %q: %q, %v", as, got, err)
		}
	}
	if got, err := ranAs(t, "no-such-user"); err == nil || err.Error() != "user no-such-user is not known on this machine" || got[0] != "" {
		t.Errorf("as nobody known it ran: %q, %v", got, err)
	}
}
