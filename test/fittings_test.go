//go:build e2e

package test

import (
	"strings"
	"testing"
)

// seen is the script of a task. It prints the effect of each flag, one per line. It ends once
// the test has seen where its port is.
const seen = `echo host $(hostname)
echo groups $(id -G)
echo core $(ulimit -c)
echo memlock $(ulimit -l)
echo scratch $(stat -f -c '%S %b' /scratch)
echo ro $(touch /ro/x 2>&1 | grep -c Read-only)
echo shm $(stat -f -c '%S %b' /dev/shm)
echo device $(stat -c '%t:%T' /dev/own)
echo env $EPOCHS $FROM_FILE
echo in $(pwd)
echo mounted $(cat /data/in)
until [ -e /data/told ]; do sleep 0.1; done
`

// TestDockerFlagsSeen checks the effects, in a real container, of the flags of docker run that
// carma accepts.
func TestDockerFlagsSeen(t *testing.T) {
	s := newServer(t, "--allowed-devices", "/dev/full", "--allowed-mounts", "/")
	s.start()
	in := s.write("in", "from the host")
	env := s.write("env", "FROM_FILE=yes")
	folder := strings.TrimSuffix(in, "/in")
	args := []string{"run", "--host", "--gpus", "0", "--rm", "--quiet", "--no-healthcheck", "--disable-content-trust",
		"--hostname", "box-1", "--group-add", "4242", "--ulimit", "core=0", "--ulimit", "memlock=8388608", "--ipc", "private",
		"--tmpfs", "/scratch:size=2M", "--mount", "type=tmpfs,target=/ro,ro", "--shm-size", "32M", "--device", "/dev/full:/dev/own:r",
		"-e", "EPOCHS=3", "--env-file", env, "--workdir", "/usr", "--mount", "type=bind,source=" + folder + ",target=/data,readonly",
		"--memory", "256m", "--memory-reservation", "64m", "--cpus", "0.5", "--pids-limit", "100", "--name", "seen", "--label", "a=b", "--stop-timeout", "5", "--stop-signal", "INT",
		"-p", "8888", "--", "/bin/sh", "-c", seen}
	run := s.begin(nil, args...)
	run.await(&run.err, "port 8888/tcp: http://127.0.0.1:")
	s.write("told", "")
	r := run.wait()
	if r.code != 0 {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	for _, line := range []string{
		"host box-1", "core 0", "memlock 8192", "scratch 4096 512", "ro 1", "shm 4096 8192", "device 1:7", "env 3 yes", "in /usr", "mounted from the host",
	} {
		if !strings.Contains(r.out, line+"\n") {
			t.Errorf("no line %q in\n%s", line, r.out)
		}
	}
	if !strings.Contains(r.out, " 4242") {
		t.Errorf("its groups:\n%s", r.out)
	}
}
