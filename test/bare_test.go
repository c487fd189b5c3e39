//go:build e2e

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/containers/bare"
	"carma/runner/mounts"

	"github.com/moby/moby/client"
)

// bareHome fills the home of an attacker: a conda environment and a virtual
// environment, whose Python is the machine's shell, and scripts. Beside it is
// another user's.
func (a *attacker) bareHome() {
	a.t.Helper()
	env, other := a.home+"/miniconda3/envs/exp", filepath.Join(a.root, "other")
	for _, dir := range []string{env + "/conda-meta", env + "/bin", env + "/etc/conda/activate.d", a.home + "/v/bin", other} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			a.t.Fatal(err)
		}
	}
	// A set-uid program of root's in her home, which an administrator has left there.
	id, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		a.t.Fatal(err)
	}
	for path, text := range map[string]string{
		env + "/etc/conda/activate.d/a.sh": "FROM_SCRIPT=$CONDA_DEFAULT_ENV; export FROM_SCRIPT\n",
		a.home + "/v/pyvenv.cfg":           "",
		a.home + "/own":                    "mine\n",
		a.home + "/attacks.sh":             attacks,
		a.home + "/setuid":                 string(id),
		other + "/secret":                  "hers\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			a.t.Fatal(err)
		}
	}
	for at, to := range map[string]string{env + "/bin/python": "/bin/sh", a.home + "/v/bin/python": "/bin/sh", a.home + "/out": other} {
		if err := os.Symlink(to, at); err != nil {
			a.t.Fatal(err)
		}
	}
	for _, err := range []error{os.Chmod(a.home+"/setuid", os.ModeSetuid|0o755), os.Chown(other, int(a.other), int(a.other)), os.Chmod(other, 0o700), os.Chown(a.home+"/own", int(a.id), int(a.id))} {
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

// attacks is a script for a task without an image. It has a line for each protection. The
// arguments are paths that it must not see.
const attacks = `
wall() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "broken: $name"; else echo "held: $name"; fi; }
works() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "works: $name"; else echo "does not work: $name"; fi; }
works "read its own home" cat own
works "write to its own home" sh -c 'echo more >> own'
works "write to /tmp" touch /tmp/carma-bare-mark
works "read the machine's settings" cat /etc/passwd
for path in "$@"; do wall "see $path" ls -d "$path"; done
for path in /run/docker.sock /run/containerd/containerd.sock /run/dbus /var/lib/docker /var/lib/containerd /home/* /root/.bashrc; do wall "see $path" ls -d "$path"; done
wall "list /root" ls /root
wall "read /etc/shadow" cat /etc/shadow
wall "write to /usr" touch /usr/carma-bare-mark
wall "write to /etc" touch /etc/carma-bare-mark
wall "write to the machine's bin" touch /bin/carma-bare-mark
wall "write to /" touch /carma-bare-mark
wall "follow a link to another's home" cat out/secret
wall "set-uid of root's" sh -c './setuid -u | grep -qx 0'
wall "mount" mount -t tmpfs none /tmp
wall "become root by su" sh -c 'echo | su -c true'
wall "a user namespace" unshare -Ur true
wall "a disk" sh -c 'ls /dev/sd* /dev/vd* /dev/nvme* /dev/loop* /dev/kmsg /dev/mem | grep -q .'
wall "another's process" sh -c 'test $(ls -d /proc/[0-9]* | wc -l) -gt 8'
`

// walls runs the attacks as the attacker, and checks that every restriction holds.
func (a *attacker) walls(on string) {
	t := a.t
	t.Helper()
	r := a.run("run", "--mem", "1G", "-w", a.home, "--host", "--", "sh", "attacks.sh", a.dir, filepath.Dir(a.socket)+"/s", mounts.DefaultDir, filepath.Join(a.root, "other"), a.outside, "/tmp/carma-bare-host")
	for _, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
		if !strings.HasPrefix(line, "held: ") && !strings.HasPrefix(line, "works: ") {
			t.Errorf("%s: %s", on, line)
		}
		t.Logf("%s: wall %s", on, line)
	}
	if n := strings.Count(r.out, "held: "); r.code != 0 || n < 24 || strings.Count(r.out, "works: ") != 4 {
		t.Errorf("%s: %d walls: %v", on, n, r)
	}
	// Root's own task: the kernel's rights do not stop it, the mounts do.
	r = a.carma("run", "--mem", "1G", "-w", a.home, "--host", "--", "sh", "-c", "id -u; for d in /usr /etc /bin /opt; do touch $d/carma-bare-mark && echo wrote to $d; done; mount -o remount,rw /usr && echo remounted; true")
	if r.code != 0 || strings.TrimSpace(r.out) != "0" {
		t.Errorf("%s: as root: %v", on, r)
	}
	for _, path := range []string{"/tmp/carma-bare-mark", "/usr/carma-bare-mark", "/etc/carma-bare-mark"} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s: the machine has %s: %v", on, path, err)
		}
	}
}

// environments runs a program in each kind of environment, as the attacker.
func (a *attacker) environments() {
	t := a.t
	t.Helper()
	env := a.home + "/miniconda3/envs/exp"
	run := func(args ...string) string {
		t.Helper()
		r := a.run(append([]string{"run", "--mem", "1G", "-w", a.home}, args...)...)
		if r.code != 0 {
			t.Errorf("%q: %v", args, r)
		}
		return strings.TrimSpace(r.out)
	}
	show := `echo "$CONDA_PREFIX|$CONDA_DEFAULT_ENV|$FROM_SCRIPT|$VIRTUAL_ENV|$(command -v python)|$(pwd)|$(id -u):$(id -g)|$1"`
	who := fmt.Sprintf("%d:%d", a.id, a.id)
	for want, args := range map[string][]string{
		env + "|exp|exp||" + env + "/bin/python|" + a.home + "|" + who + "|a  b":               {"--conda", env, "--", "python", "-c", show, "x", "a  b"},
		"||||" + "" + "|" + a.home + "|" + who + "|host":                                       {"--host", "-e", "PATH=/usr/bin:/bin", "--", "sh", "-c", strings.Replace(show, "command -v python", "true", 1), "x", "host"},
		"|||" + a.home + "/v|" + a.home + "/v/bin/python|" + a.home + "|" + who + "|in a venv": {"--venv", a.home + "/v", "--", "python", "-c", show, "x", "in a venv"},
	} {
		if got := run(args...); got != want {
			t.Errorf("%q: %s\nwant %s", args, got, want)
		}
	}
	for _, kind := range [][]string{{"--host"}, {"--conda", env}, {"--venv", a.home + "/v"}} {
		// The first process reaps a shell's orphans, and returns its code.
		script := `tr '\0' ' ' </proc/1/cmdline; (sleep 0.2 & echo $! >/tmp/left); while kill -0 $(cat /tmp/left) 2>/dev/null; do :; done; echo gone`
		got := run(slices.Concat([]string{"--init"}, kind, []string{"--", "sh", "-c", script})...)
		if !strings.HasPrefix(got, "/.carma/init reap ") || !strings.HasSuffix(got, "gone") {
			t.Errorf("--init %q: %s", kind, got)
		}
	}
	const python = "/usr/bin/python3" // one of the machine's folders
	if _, err := os.Stat(python); err != nil {
		t.Log(err)
		return
	}
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", a.home+"/real").CombinedOutput(); err != nil {
		t.Logf("no venv on this machine: %s", out)
		return
	}
	if got := run("--venv", a.home+"/real", "--", "python", "-c", "import sys; print(sys.prefix)"); got != a.home+"/real" {
		t.Errorf("Python's prefix is %s", got)
	}
}

// terminals runs a program of the machine, and one of a conda environment, in a
// terminal and with an input.
func (a *attacker) terminals() {
	t := a.t
	t.Helper()
	for _, args := range [][]string{{"--host", "--", "sh"}, {"--conda", a.home + "/miniconda3/envs/exp", "--", "python"}} { // which is sh
		w := a.window(30, 90, append([]string{"run", "-it", "--mem", "1G", "-w", a.home}, args...)...)
		w.types("stty size; test -t 0 && test -t 1 && echo $TERM:$CONDA_DEFAULT_ENV:; exit 7\n")
		w.shows("30 90")
		if args[0] == "--host" {
			w.shows("xterm::")
		} else {
			w.shows("xterm:exp:")
		}
		w.exits(7)
		r := a.piped("echo $CONDA_DEFAULT_ENV in $(pwd); exit 6", append([]string{"run", "-i", "--mem", "1G", "-w", a.home}, args...)...)
		if want := "in " + a.home + "\n"; r.code != 6 || !strings.HasSuffix(r.out, want) {
			t.Errorf("%q with an input: %v", args, r)
		}
	}
}

// TestSecurityBare: tasks without an image on Docker: their environments, their
// isolation, their limits, and their image, which is made again if the engine has lost
// it.
func TestSecurityBare(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t)
	a := newAttacker(s)
	a.bareHome()
	if err := os.WriteFile("/tmp/carma-bare-host", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove("/tmp/carma-bare-host") })
	a.environments()
	a.terminals()
	a.walls("docker")

	hog := strings.TrimSpace(a.run("run", "-d", "--mem", "1G", "-w", a.home, "--host-mem", "32M", "--host", "--", "sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}").out)
	if task := a.until(hog, "its end", ended); task.Attempts[0].Outcome != "host-oom" {
		t.Errorf("200 MB in 32 MiB: %s, %s", task.Attempts[0].Outcome, task.Reason)
	}
	before, err := engine.cli.ImageInspect(t.Context(), bare.Image)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.cli.ImageRemove(t.Context(), bare.Image, client.ImageRemoveOptions{Force: true}); err == nil {
		if r := a.run("run", "--mem", "1G", "-w", a.home, "--host", "--", "echo", "again"); r.out != "again\n" {
			t.Errorf("after its image was removed: %v", r)
		}
		if after, err := engine.cli.ImageInspect(t.Context(), bare.Image); err != nil || after.ID != before.ID {
			t.Errorf("the image is another: %v", err)
		}
	}
	for words, args := range map[string][]string{
		"does not see it":         {"-w", "/srv", "--host", "--", "true"},
		"permission denied":       {"-w", a.home, "--venv", a.home + "/out", "--", "true"},
		"it is carma's own":       {bare.Image, "true"},
		"has no folder conda":     {"-w", a.home, "-e", "../../x", "--", "true"},
		"and has no such place":   {"-w", a.home, "-v", a.home + ":/usr/none", "--host", "--", "true"},
		"an image would, and the": {"--host", "img", "--", "true"},
	} {
		if r := a.run(append([]string{"run", "-d"}, args...)...); r.code != 2 || !strings.Contains(r.err, words) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%q: %v, want %q", args, r, words)
		}
	}
	waits := strings.TrimSpace(a.run("run", "-d", "--mem", "1G", "-w", a.home, "--host", "--", "sh", "-c", "until test -e go; do sleep 0.1; done; echo gone").out)
	a.running(waits)
	a.kill()
	a.start()
	if err := os.WriteFile(a.home+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a.succeeded(waits)
	if out, _ := a.lines(waits); !slices.Equal(out, []string{"gone"}) {
		t.Errorf("a task over a kill of the daemon printed %q", out)
	}
	if task := a.inspect(hog); task.Image != "host" || !slices.Equal(task.Submit.Command[:1], []string{"sh"}) {
		t.Errorf("after a restart: %+v", task.Submit)
	}
	if v := a.verified(); v.Succeeded < 4 {
		t.Errorf("the journal has %+v", v)
	}
	eventually(t, "nothing is left for the engine", func() bool {
		left, _ := os.ReadDir(filepath.Join(mounts.DefaultDir, a.instance()))
		return len(left) == 0
	})
}
