package devices

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"carma/runner/gpu/devices/devicestest"
)

// TestMain also acts as the child of a Checker and as a container's program.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == ChildCommand:
		os.Exit(RunChild(os.Stdin, os.Stdout))
	case len(os.Args) > 1 && os.Args[1] == "container":
		os.Exit(program())
	}
	os.Exit(m.Run())
}

// program has a /dev of its own with two GPUs. Their nodes have the number of /dev/null. A
// line of its input removes a node; its end ends the program.
func program() int {
	err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("tmpfs", "/dev", "tmpfs", 0, "")
	}
	for _, name := range []string{"nvidia0", "nvidia1", "nvidiactl", "null"} {
		err = errors.Join(err, unix.Mknod("/dev/"+name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	}
	// These paths must not be checked as devices.
	err = errors.Join(err, os.WriteFile("/dev/nvidia7", nil, 0o600), os.Symlink("/dev/null", "/dev/nvidia8"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(os.Remove(lines.Text()))
	}
	return 0
}

// box is a process in control groups of its own, like a container.
type box struct {
	t      testing.TB
	groups []group
	c      Container
	in     io.WriteCloser
	out    *bufio.Scanner
}

func newBox(t testing.TB) *box {
	t.Helper()
	mounted := hierarchies()
	if os.Geteuid() != 0 || len(mounted) == 0 {
		t.Skip("needs root and control groups")
	}
	name := fmt.Sprintf("%064x", os.Getpid()<<16|len(t.Name()))
	b := &box{t: t, c: Container{Names: []string{name}}}
	cmd := exec.Command("/proc/self/exe", "container")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	b.in, _ = cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	b.out = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Skipf("no mount namespace: %v", err)
	}
	b.c.PID = cmd.Process.Pid
	t.Cleanup(func() {
		_ = b.in.Close()
		_ = cmd.Wait()
		for _, g := range b.groups {
			if err := os.Remove(g.dir); err != nil { // fails while a process is in it
				t.Error(err)
			}
			_ = os.Remove(filepath.Dir(g.dir))
		}
	})
	if b.out.Scan(); b.out.Text() != "ready" {
		t.Fatalf("the program says %q", b.out.Text())
	}
	for _, h := range mounted {
		g := group{filepath.Join(h.mount, "carma-test-"+fmt.Sprint(os.Getpid()), name), h.second}
		if err := os.MkdirAll(g.dir, 0o755); err != nil {
			t.Skipf("no control group can be made: %v", err)
		}
		b.groups = append(b.groups, g)
		if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), fmt.Append(nil, b.c.PID), 0); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(b.groups)
	return b
}

func (b *box) check() Result {
	b.t.Helper()
	return (&Checker{}).Check(b.t.Context(), []Container{b.c})[0]
}

func (b *box) wants(states string) {
	b.t.Helper()
	r := b.check()
	var got []string
	for _, n := range r.Nodes {
		got = append(got, filepath.Base(n.Path)+" "+string(n.State))
	}
	if text := strings.Join(got, ", "); text != states || r.Why != "" {
		b.t.Errorf("%s (%s), want %s", text, r.Why, states)
	}
	// The child has left.
	for _, g := range b.groups {
		if procs, _ := os.ReadFile(filepath.Join(g.dir, "cgroup.procs")); strings.TrimSpace(string(procs)) != fmt.Sprint(b.c.PID) {
			b.t.Errorf("in %s: %q", g.dir, procs)
		}
	}
}

const allOpen = "nvidia0 openable, nvidia1 openable, nvidiactl openable"

// TestFirstVersion: the devices controller denies a device, and allows it again.
func TestFirstVersion(t *testing.T) {
	b := newBox(t)
	i := slices.IndexFunc(b.groups, func(g group) bool { return !g.second })
	if i < 0 {
		t.Skip("no devices controller of version 1")
	}
	dir := b.groups[i].dir
	if err := os.WriteFile(filepath.Join(dir, "devices.deny"), []byte("a"), 0); err != nil {
		t.Fatal(err)
	}
	devicestest.AllowFirst(t, dir, "1:3") // as engines do: all others are denied
	b.wants(allOpen)
	before := (&Checker{}).Rules(b.c.PID, b.c.Names)
	if before == "" || before != (&Checker{}).Rules(b.c.PID, b.c.Names) {
		t.Errorf("rules %q", before)
	}
	devicestest.DenyFirst(t, dir, "1:3")
	b.wants("nvidia0 denied, nvidia1 denied, nvidiactl denied")
	if got := b.check(); got.State() != Denied || len(got.Lost()) != 3 {
		t.Errorf("%+v", got)
	}
	if after := (&Checker{}).Rules(b.c.PID, b.c.Names); after == before {
		t.Error("the rules seem not to have changed")
	}
	devicestest.AllowFirst(t, dir, "1:3")
	b.wants(allOpen)
}

// TestSecondVersion: a BPF program denies the devices, and is detached again.
func TestSecondVersion(t *testing.T) {
	b := newBox(t)
	i := slices.IndexFunc(b.groups, func(g group) bool { return g.second })
	if i < 0 {
		t.Skip("no control groups of version 2")
	}
	before := (&Checker{}).Rules(b.c.PID, b.c.Names)
	allow := devicestest.DenySecond(t, b.groups[i].dir)
	b.wants("nvidia0 denied, nvidia1 denied, nvidiactl denied")
	if after := (&Checker{}).Rules(b.c.PID, b.c.Names); after == before || after == "" {
		t.Errorf("the rules seem not to have changed: %q", after)
	}
	allow()
	b.wants(allOpen)
}

// TestGone checks that a removed node is reported as gone, even if no user could open it
// before.
func TestGone(t *testing.T) {
	b := newBox(t)
	before := b.check()
	_, _ = fmt.Fprintln(b.in, "/dev/nvidia1")
	if b.out.Scan(); b.out.Text() != "<nil>" {
		t.Fatal(b.out.Text())
	}
	b.wants("nvidia0 openable, nvidiactl openable")
	got := b.check().Missing(before.Nodes)
	if got.State() != Gone || !slices.Equal(got.Lost(), []string{"/dev/nvidia1"}) {
		t.Errorf("%+v", got)
	}
}

// TestFrozen: the child does not enter a frozen container, where it would stay.
func TestFrozen(t *testing.T) {
	b := newBox(t)
	i := slices.IndexFunc(b.groups, func(g group) bool { return g.second })
	if i < 0 {
		t.Skip("no control groups of version 2")
	}
	freeze := filepath.Join(b.groups[i].dir, "cgroup.freeze")
	if err := os.WriteFile(freeze, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if got := b.check(); got.State() != Unknown || !strings.Contains(got.Why, "frozen") {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(freeze, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	b.wants(allOpen)
}

// TestNotThere: a process of another container, or of none, is not asked about.
func TestNotThere(t *testing.T) {
	b := newBox(t)
	for _, c := range []Container{{PID: os.Getpid(), Names: b.c.Names}, {PID: b.c.PID, Names: []string{"other"}}, {PID: 1 << 30, Names: b.c.Names}} {
		if got := (&Checker{}).Check(t.Context(), []Container{c})[0]; got.State() != Unknown || got.Why == "" {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := (&Checker{}).Find(map[string]bool{b.c.Names[0]: true}); got[b.c.Names[0]] != b.c.PID {
		t.Errorf("found %v, want %d", got, b.c.PID)
	}
	// An answer that does not come leaves the containers unknown.
	for _, r := range (&Checker{Program: "/bin/true"}).Check(t.Context(), []Container{b.c, b.c}) {
		if r.State() != Unknown || r.Why == "" {
			t.Errorf("%+v", r)
		}
	}
}

// TestRoom: the child does not enter a container that has almost reached its limit of
// processes.
func TestRoom(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"pids.current": "100\n", "pids.max": "120\n", "cgroup.events": "populated 1\nfrozen 0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := group{dir, true}
	if err := g.enterable(); !errors.Is(err, errNoRoom) {
		t.Errorf("%v", err)
	}
	for _, most := range []string{"max\n", "200\n"} {
		if err := os.WriteFile(filepath.Join(dir, "pids.max"), []byte(most), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := g.enterable(); err != nil {
			t.Errorf("pids.max %q: %v", most, err)
		}
	}
}

// TestPaths: a path that leads out of the hierarchy is no control group.
func TestPaths(t *testing.T) {
	mounted := []hierarchy{{"/first", false}, {"/second", true}}
	for text, want := range map[string]string{
		"9:cpu:/a\n5:devices:/docker/x\n0::/s.slice\n": "[{/first/docker/x false} {/second/s.slice true}]",
		"0::/../other\n":  "[]",
		"0::relative\n":   "[]",
		"5:a,devices:/\n": "[{/first false}]",
		"":                "[]",
	} {
		if got := fmt.Sprint(groups(mounted, []byte(text))); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
