package mps

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// standin builds the program that simulates the control daemon.
func standin(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mps") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, Binary)
	if out, err := exec.Command("go", "build", "-o", bin, "./standin/command").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

func groups(t *testing.T) *Groups {
	bin := standin(t)
	g := &Groups{Dir: filepath.Join(filepath.Dir(bin), "g"), Binary: bin}
	t.Cleanup(func() {
		list, err := g.List()
		if err != nil {
			t.Error(err)
		}
		for _, group := range list {
			if err := g.Stop(context.WithoutCancel(t.Context()), group, true); err != nil {
				t.Error(err)
			}
		}
	})
	return g
}

func play(t *testing.T, g *Group, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := g.Ask(t.Context(), c); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
}

// TestGroup takes a control daemon through its life.
func TestGroup(t *testing.T) {
	g, ctx := groups(t), t.Context()
	group := g.Of(os.Geteuid(), os.Getegid(), []string{"GPU-b", "GPU-a"})
	if err := group.Ping(ctx); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("before it is started: %v", err)
	}
	for range 2 { // the second finds it running
		if err := g.Ensure(ctx, group); err != nil {
			t.Fatal(err)
		}
	}
	if pid := group.PID(); pid <= 0 {
		t.Errorf("its process is %d", pid)
	}
	if log, err := os.ReadFile(filepath.Join(group.Log, "control.log")); err != nil || strings.Count(string(log), "Start") != 1 || !strings.Contains(string(log), "GPU-a,GPU-b") {
		t.Errorf("its log is %q, %v", log, err)
	}
	if same := g.Of(os.Geteuid(), 7, []string{"GPU-a", "GPU-b"}); same.Pipe != group.Pipe {
		t.Error("the order of the GPUs makes another group")
	}
	if other := g.Of(os.Geteuid(), 7, []string{"GPU-a"}); other.Pipe == group.Pipe {
		t.Error("two sets of GPUs have one control daemon")
	}
	if other := g.Of(12345, 7, []string{"GPU-a", "GPU-b"}); other.Pipe == group.Pipe || other.Credential == nil || other.Credential.Uid != 12345 {
		t.Error("two users have one control daemon")
	}
	play(t, group, "standin_connect 4001 GPU-a python", "standin_connect 4002 GPU-b train")
	servers, err := group.Servers(ctx)
	want := []Server{{PID: 100001, Status: "ACTIVE", Clients: []Client{{4001, "GPU-a", "python"}, {4002, "GPU-b", "train"}}}}
	if err != nil || !reflect.DeepEqual(servers, want) {
		t.Errorf("servers %+v, %v", servers, err)
	}
	if err := g.Stop(ctx, group, false); !errors.As(err, new(*BusyError)) {
		t.Errorf("stopped under its clients: %v", err)
	}
	n, err := group.TerminateOf(ctx, func(pid int) bool { return pid == 4001 })
	if n != 1 || err != nil {
		t.Errorf("%d terminated, %v", n, err)
	}
	if servers, _ := group.Servers(ctx); len(servers) != 1 || len(servers[0].Clients) != 1 || servers[0].Clients[0].PID != 4002 {
		t.Errorf("left: %+v", servers)
	}
	if err := group.Terminate(ctx, 100001, 4001); err == nil || !strings.Contains(err.Error(), "4001 not found") {
		t.Errorf("terminated twice: %v", err)
	}
	list, err := g.List()
	if err != nil || len(list) != 1 || list[0].Pipe != group.Pipe || !slices.Equal(list[0].GPUs, group.GPUs) {
		t.Errorf("listed %+v, %v", list, err)
	}
	if err := g.Stop(ctx, group, true); err != nil {
		t.Fatal(err)
	}
	if err := group.Ping(ctx); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after it was stopped: %v", err)
	}
	if err := g.Stop(ctx, group, false); err != nil {
		t.Errorf("stopped again: %v", err)
	}
}

// TestMend: a server in FAULT ends when its clients have left. A control daemon
// that died is started again.
func TestMend(t *testing.T) {
	g, ctx := groups(t), t.Context()
	group := g.Of(os.Geteuid(), os.Getegid(), []string{"GPU-a"})
	if err := g.Ensure(ctx, group); err != nil {
		t.Fatal(err)
	}
	mend := func(want bool, when string) {
		t.Helper()
		if wrong, err := g.Fix(ctx, group); err != nil || wrong != want {
			t.Errorf("%s: %v, %v", when, wrong, err)
		}
	}
	play(t, group, "standin_connect 1 GPU-a a", "standin_connect 2 GPU-a b")
	mend(false, "all is well")
	play(t, group, "standin_fault 1")
	mend(true, "clients are connected")
	if servers, _ := group.Servers(ctx); len(servers) != 1 || servers[0].Status != Fault {
		t.Errorf("servers %+v", servers)
	}
	if _, err := group.Ask(ctx, "standin_connect 3 GPU-a c"); err == nil {
		t.Error("a server in FAULT takes clients")
	}
	play(t, group, "standin_leave 1", "standin_leave 2")
	mend(true, "the clients have left")
	play(t, group, "standin_connect 3 GPU-a c")
	mend(false, "after the repair")

	process, err := os.FindProcess(group.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !errors.Is(group.Ping(ctx), ErrNotRunning); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not die")
		}
	}
	mend(true, "it was killed")
	mend(false, "after the restart")
}

// TestShared: one control daemon serves all users, from one server.
func TestShared(t *testing.T) {
	g := groups(t)
	g.Shared = true
	a, b := g.Of(1, 1, []string{"GPU-a"}), g.Of(2, 2, []string{"GPU-a"})
	if a.Pipe != b.Pipe || !a.MultiUser || a.Credential != nil {
		t.Errorf("%+v and %+v", a, b)
	}
	if err := g.Ensure(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(a.Pipe); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("pipe folder: %v, %v", info.Mode(), err)
	}
	// The other spelling of the option.
	if err := os.WriteFile(filepath.Join(filepath.Dir(g.Binary), "old-spelling"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	old := g.Of(1, 1, []string{"GPU-b"})
	if err := g.Ensure(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	for _, group := range []*Group{a, old} {
		if log := logOf(t, group); !strings.Contains(log, "multi-user true") {
			t.Errorf("its log is %q", log)
		}
	}
}

func logOf(t *testing.T, g *Group) string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(g.Log, "control.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// TestLibraries: the server finds the libraries that this process finds, and its own
// program beside the control program.
func TestLibraries(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")
	g := groups(t)
	group := g.Of(os.Geteuid(), os.Getegid(), []string{"GPU-a"})
	if err := g.Ensure(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if log := logOf(t, group); !strings.Contains(log, `libraries "/usr/local/nvidia/lib64"`) || !strings.Contains(log, "path "+filepath.Dir(g.Binary)+":") {
		t.Errorf("its log is %q", log)
	}
}

// TestFind: the programs are found in PATH and where drivers are mounted; one program without
// the other does not count.
func TestFind(t *testing.T) {
	folder := func(programs ...string) string {
		dir := t.TempDir()
		for _, name := range programs {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	both, control, server, none := folder(Binary, serverProgram), folder(Binary), folder(serverProgram), folder()
	before := driverFolders
	defer func() { driverFolders = before }()
	for _, row := range []struct {
		name, path, mounted, ask, want, lacks string
	}{
		{"in PATH", both, none, "", both, ""},
		{"mounted", none, both, "", both, ""},
		{"in two places of PATH", control + ":" + server, none, Binary, control, ""},
		{"by path", none, none, filepath.Join(both, Binary), both, ""},
		{"no server", control, none, "", "", serverProgram},
		{"by path, no server", none, none, filepath.Join(control, Binary), "", serverProgram},
		{"nothing", none, none, "", "", Binary},
		{"no such path", both, both, "/no/" + Binary, "", "/no/" + Binary},
	} {
		t.Setenv("PATH", row.path)
		driverFolders = []string{row.mounted}
		path, err := Find(row.ask)
		switch {
		case row.want != "" && (err != nil || path != filepath.Join(row.want, Binary)):
			t.Errorf("%s: %q, %v", row.name, path, err)
		case row.want == "" && (!errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), row.lacks+" is")):
			t.Errorf("%s: %q, %v", row.name, path, err)
		}
	}
}

// TestOtherUser: the control daemon runs as its group's user.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of others")
	}
	g := groups(t)
	group := g.Of(65534, 65534, []string{"GPU-a"})
	if err := g.Ensure(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(filepath.Join(group.Log, "control.log")); err != nil || !strings.Contains(string(log), "user 65534") {
		t.Errorf("its log is %q, %v", log, err)
	}
	stranger := *group
	stranger.Credential = g.Of(65533, 65533, nil).Credential
	if err := stranger.Ping(t.Context()); err == nil {
		t.Error("it answers a stranger")
	}
}

func TestNotInstalled(t *testing.T) {
	g := &Groups{Dir: t.TempDir(), Binary: "carma-no-such-program"}
	err := g.Ensure(t.Context(), g.Of(os.Geteuid(), os.Getegid(), []string{"GPU-a"}))
	if err == nil || !errors.Is(err, ErrNotInstalled) {
		t.Errorf("without the program: %v", err)
	}
}

func TestProcesses(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want []process
	}{
		"as the manual shows it": {"PID       ID    SERVER DEVICE  NAMESPACE COMMAND\n9741      0 6472    GPU-cb1213a3-d6a4-be7f 4026531836 ./nbody\n9743 0 6472 GPU-cb 4026531836 ./matrixMul\n",
			[]process{{9741, 6472, "GPU-cb1213a3-d6a4-be7f", "./nbody"}, {9743, 6472, "GPU-cb", "./matrixMul"}}},
		"other columns":  {"SERVER PID\n1 2\n", []process{{2, 1, "", ""}}},
		"garbage":        {"PID SERVER\nx y\n\n3\n", nil},
		"nothing at all": {"", nil},
	} {
		if got := processes(row.text); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := pids("12\n x -3\n0 12 13 99999999999999999999"); !slices.Equal(got, []int{12, 13}) {
		t.Errorf("pids %v", got)
	}
}

func FuzzProcesses(f *testing.F) {
	f.Add("PID ID SERVER DEVICE NAMESPACE COMMAND\n9741 0 6472 GPU-cb 4026531836 ./nbody\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range processes(text) {
			if p.pid == 0 && p.server == 0 && p.device == "" && p.command == "" && !strings.Contains(text, "0") {
				t.Errorf("a row of nothing in %q", text)
			}
		}
	})
}

func TestEnv(t *testing.T) {
	for _, row := range []struct {
		limits Limits
		want   []string
	}{
		{Limits{}, []string{"CUDA_MPS_PIPE_DIRECTORY=/p"}},
		{Limits{Memory: []int64{7 << 30, 7<<30 + 1}, Threads: 40}, []string{
			"CUDA_MPS_PIPE_DIRECTORY=/p", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=40", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=7168M,1=7169M",
		}},
		{Limits{Memory: []int64{0, 1 << 30}}, []string{"CUDA_MPS_PIPE_DIRECTORY=/p", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=1024M"}},
	} {
		if got := row.limits.Env("/p"); !slices.Equal(got, row.want) {
			t.Errorf("%+v: %q", row.limits, got)
		}
	}
}
